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

// lane is the single path by which a network interface, or a scale set with its instances, is
// written. Updater.mu guards all but the scale set state.
type lane struct {
	key string
	// id is requested admission for. Until the interface is known, it has the machine's name.
	id lb.ResourceID
	// group is empty for a scale set.
	group          string
	machines       map[string]*machine
	due, notBefore time.Time
	running        bool
	// waits and readCount are consecutive waits, and reads that found nothing to do.
	waits, looks int
	lookedAt     time.Time
	wroteAt      time.Time
	// found is true if id is the interface's id, listed if shown is from a list newer than the last
	// write.
	found, listed bool
	shown         []lb.NetworkInterface
	shownAt       time.Time
	model         string
	anew          bool
	memory        memory
}

// memory belongs to the running attempt.
type memory struct {
	// tried are resources written since the last change. If they still differ, they have failed.
	tried map[string]bool
	// overtaken is true if the model changed between a read and a write.
	overtaken bool
	// level are instances without other changes than Weir's, valid for this etag.
	level map[string]bool
	etag  string
	// since is when the wait for Azure's upgrade started, by instance.
	since map[string]time.Time
	alone map[string]bool
}

type machine struct {
	nic.Machine
	key   string
	lane  *lane
	pools map[lb.PoolKey]*pool
	state state
	// blocked means waiting for admission, unusable that the machine cannot join.
	why               string
	blocked, unusable bool
	// err is why the last attempt failed, and notified the pools that know of it.
	err  error
	told map[lb.PoolKey]bool
	// want and observed are empty if unknown.
	want, was string
	// look forces a read. Reads before requestedAt do not count.
	look  bool
	asked time.Time
	// since is the first request since the machine was done; zero if done.
	since time.Time
}

type state int

const (
	done state = iota
	working
	waiting
	failing
)

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

// ask requires u.mu.
func (u *Updater) ask(m *machine, now, at time.Time) {
	l := m.lane
	m.moves(now)
	m.asked, m.look, m.err, m.told, m.why, m.blocked, m.unusable = now, false, nil, nil, "", false, false
	l.anew, l.waits, l.looks = true, 0, 0
	u.becomes(m, working)
	u.dueAt(l, at)
}

// lookAgain schedules a read of machines in sync, all at the same time, so that one list serves
// them. It requires u.mu.
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

// dueAt schedules the worker at the given time or earlier. It requires u.mu.
func (u *Updater) dueAt(l *lane, at time.Time) {
	l.due = poolschedule.Earlier(l.due, at)
	u.busy[l.key] = l
}

// becomes also records pools that have become idle: nothing is working, or a wait has ended. It
// requires u.mu.
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

// reap removes a machine that no pool names, and its worker with the last one. It requires u.mu.
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
