// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"cmp"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/poolschedule"
)

// lane is the one path by which a resource is written: a machine's network interface, or a scale set
// with its instances. Updater.mu guards it, but for memory.
type lane struct {
	key string
	// id is what leave is asked for. Of a machine whose interface is not known yet it has the name
	// of the machine.
	id lb.ResourceID
	// group is the resource group of a machine's interfaces; empty for a scale set.
	group    string
	machines map[string]*machine
	// due is when there is something to do, and notBefore a time that Azure has named.
	due, notBefore time.Time
	running        bool
	// waits and looks count how often in a row something was waited for, or found right.
	waits, looks int
	lookedAt     time.Time
	// wroteAt is when an attempt last ended that has written.
	wroteAt time.Time
	// found is true if id is that of the interface, and listed if shown is what a list has shown of
	// the machine since it was written last.
	found, listed bool
	shown         []lb.NetworkInterface
	shownAt       time.Time
	// model is what the model of the scale set was last seen to be.
	model string
	// anew is true if what was tried before does not count any more.
	anew   bool
	memory memory
}

// memory is what an attempt at a scale set leaves to the next. It belongs to the attempt.
type memory struct {
	// tried are the resources that were written since there was something new: what then is not as
	// it was written has failed.
	tried map[string]bool
	// overtaken is true if somebody else has written the model between a read and a write.
	overtaken bool
	// level is nic.Known.Level, as long as the scale set has this etag.
	level map[string]bool
	etag  string
	// since is when each instance was first waited for that Azure was to upgrade.
	since map[string]time.Time
	// alone is nic.Known.Alone.
	alone map[string]bool
}

// machine is what is known of a machine that a pool names.
type machine struct {
	nic.Machine
	key   string
	lane  *lane
	pools map[lb.PoolKey]*pool
	state state
	// why is what is waited for; blocked is true if that is leave to work, and unusable if the machine
	// cannot join as it is.
	why               string
	blocked, unusable bool
	// err is what its try has ended with, and told which pools know.
	err  error
	told map[lb.PoolKey]bool
	// want is what it has to be, and was what it was last seen to be; empty if not known.
	want, was string
	// look is true if it has to be read though it was seen to be right, and asked when it was asked
	// for: what was read before says nothing.
	look  bool
	asked time.Time
	// since is when it was first asked for since it was done; zero if it is.
	since time.Time
}

// state is what becomes of a machine.
type state int

const (
	done state = iota
	working
	waiting
	failing
)

// link makes a machine one of a pool.
func (u *Updater) link(p *pool, id lb.PoolKey, key string, of nic.Machine) {
	if p.machines[key] != nil {
		return
	}
	l := u.laneOf(of)
	m := l.machines[key]
	if m == nil {
		m = &machine{Machine: of, key: key, lane: l, pools: map[lb.PoolKey]*pool{}}
		l.machines[key] = m
	}
	m.pools[id], p.machines[key] = p, m
	if m.state == working {
		p.working++
	}
}

func (u *Updater) laneOf(m nic.Machine) *lane {
	id, group := m.ScaleSet, ""
	if !m.Uniform() {
		id = lb.ResourceID{SubscriptionID: m.VM.SubscriptionID, ResourceGroup: m.VM.ResourceGroup, Type: lb.TypeNetworkInterface, Name: m.VM.Name}
		group = strings.ToLower(m.VM.SubscriptionID + "/" + m.VM.ResourceGroup)
	}
	key := nic.Resource{ID: id}.Lane()
	if u.lanes[key] == nil {
		u.lanes[key] = &lane{key: key, id: id, group: group, machines: map[string]*machine{}}
	}
	return u.lanes[key]
}

// ask has a machine attempted. The caller holds u.mu.
func (u *Updater) ask(m *machine, now, at time.Time) {
	l := m.lane
	m.moves(now)
	m.asked, m.look, m.err, m.told, m.why, m.blocked, m.unusable = now, false, nil, nil, "", false, false
	l.anew, l.waits, l.looks = true, 0, 0
	u.becomes(m, working)
	u.dueAt(l, at)
}

// lookAgain has machines looked at that were found to be right, at one time, so that one list serves
// all. The caller holds u.mu.
func (u *Updater) lookAgain(all []*machine, now time.Time) {
	at, looked := now.Add(gather), map[*lane]int{}
	for _, m := range all {
		l, since := m.lane, now.Sub(m.lane.lookedAt)
		n := l.looks
		switch idle := l.due.IsZero() && !l.running; {
		case idle && since > 2*looks.Max:
			n = 1
		case idle:
			n++
		}
		if pause := looks.After(n); since < pause {
			at = poolschedule.Later(at, now.Add(pause))
		}
		looked[l] = n
	}
	for _, m := range all {
		u.ask(m, now, at)
		m.look, m.lane.looks = true, looked[m.lane]
	}
}

// dueAt has a lane attempted at a time, or before. The caller holds u.mu.
func (u *Updater) dueAt(l *lane, at time.Time) {
	l.due = poolschedule.Earlier(l.due, at)
	u.busy[l.key] = l
}

// becomes changes the state of a machine, and notes the pools of which nothing is under way any more,
// or nothing waited for that was. The caller holds u.mu.
func (u *Updater) becomes(m *machine, s state) {
	before := m.state
	m.state = s
	if s == done {
		m.moved(u.cfg.Meter, time.Now())
	}
	for key, p := range m.pools {
		switch {
		case before != working && s == working:
			p.working++
		case before == working && s != working:
			p.working--
		}
		if s == done && p.roles[m.key] == witness {
			p.roles[m.key] = witnessed
		}
		ended := before == working || before == waiting && (s == done || s == failing)
		if ended && p.working == 0 {
			u.settled[key] = p.target.ID
		}
	}
}

// reap drops a machine that no pool names, and its lane with the last one. The caller holds u.mu.
func (u *Updater) reap(m *machine) {
	for key, p := range m.pools {
		if p.roles[m.key] == 0 && m.state == done {
			delete(p.machines, m.key)
			delete(m.pools, key)
		}
	}
	l := m.lane
	if len(m.pools) > 0 || l.running {
		return
	}
	delete(l.machines, m.key)
	if len(l.machines) == 0 {
		delete(u.lanes, l.key)
		delete(u.busy, l.key)
	}
}

func byKey(a, b nic.Machine) int { return cmp.Compare(a.Key(), b.Key()) }
