// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"cmp"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/ratelimit"
)

// worker is the single path by which a network interface, or a scale set with its instances, is
// written. Updater.mu guards all but the scale set state.
type worker struct {
	key string
	// id is requested admission for. Until the interface is known, it has the machine's name.
	id lb.ResourceID
	// resourceGroup is empty for a scale set.
	resourceGroup  string
	machines       map[string]*machine
	due, notBefore time.Time
	running        bool
	// waitCount and readCount are consecutive waits, and reads that found nothing to do.
	waitCount, readCount int
	lastReadAt           time.Time
	lastWriteAt          time.Time
	// hasInterface is true if id is the interface's id, listed if shown is from a list newer than the last
	// write.
	hasInterface, hasList bool
	interfaces            []lb.NetworkInterface
	interfacesReadAt      time.Time
	modelState            string
	hasChanges            bool
	scaleSetState         scaleSetState
}

// scaleSetState belongs to the running attempt.
type scaleSetState struct {
	// written are resources written since the last change. If they still differ, they have failed.
	written map[string]bool
	// hadConflict is true if the model changed between a read and a write.
	hadConflict bool
	// inSync are instances without other changes than Weir's, valid for this etag.
	inSync map[string]bool
	etag   string
	// waitingSince is when the wait for Azure's upgrade started, by instance.
	waitingSince map[string]time.Time
	singleWrites map[string]bool
}

type machine struct {
	nic.Machine
	key    string
	worker *worker
	pools  map[lb.PoolKey]*pool
	state  state
	reason string
	// blocked means waiting for admission, unusable that the machine cannot join.
	blocked, unusable bool
	// err is why the last attempt failed, and notified the pools that know of it.
	err      error
	notified map[lb.PoolKey]bool
	// desired and observed are empty if unknown.
	desired, observed string
	// forceRead forces a read. Reads before requestedAt do not count.
	forceRead   bool
	requestedAt time.Time
	// startedAt is the first request since the machine was done; zero if done.
	startedAt time.Time
}

type state int

const (
	stateDone state = iota
	stateWorking
	stateWaiting
	stateFailed
)

func (u *Updater) addMachine(p *pool, id lb.PoolKey, key string, of nic.Machine) {
	if p.machines[key] != nil {
		return
	}
	l := u.workerFor(of)
	m := l.machines[key]
	if m == nil {
		m = &machine{Machine: of, key: key, worker: l, pools: map[lb.PoolKey]*pool{}}
		l.machines[key] = m
	}
	m.pools[id], p.machines[key] = p, m
	if m.state == stateWorking {
		p.workingCount++
	}
}

func (u *Updater) workerFor(m nic.Machine) *worker {
	id, group := m.ScaleSet, ""
	if !m.IsUniform() {
		id = lb.ResourceID{SubscriptionID: m.VM.SubscriptionID, ResourceGroup: m.VM.ResourceGroup, Type: lb.TypeNetworkInterface, Name: m.VM.Name}
		group = strings.ToLower(m.VM.SubscriptionID + "/" + m.VM.ResourceGroup)
	}
	key := nic.Resource{ID: id}.WorkerKey()
	if u.workers[key] == nil {
		u.workers[key] = &worker{key: key, id: id, resourceGroup: group, machines: map[string]*machine{}}
	}
	return u.workers[key]
}

// requestUpdate requires u.mu.
func (u *Updater) requestUpdate(m *machine, now, at time.Time) {
	l := m.worker
	m.startTimer(now)
	m.requestedAt, m.forceRead, m.err, m.notified, m.reason, m.blocked, m.unusable = now, false, nil, nil, "", false, false
	l.hasChanges, l.waitCount, l.readCount = true, 0, 0
	u.setState(m, stateWorking)
	u.scheduleAt(l, at)
}

// requestReads schedules a read of machines in sync, all at the same time, so that one list serves
// them. It requires u.mu.
func (u *Updater) requestReads(machines []*machine, now time.Time) {
	at, looked := now.Add(batchDelay), map[*worker]int{}
	for _, m := range machines {
		l, since := m.worker, now.Sub(m.worker.lastReadAt)
		n := l.readCount
		switch idle := l.due.IsZero() && !l.running; {
		case idle && since > 2*readBackoff.Max:
			n = 1
		case idle:
			n++
		}
		if pause := readBackoff.DelayAfter(n); since < pause {
			at = ratelimit.MaxTime(at, now.Add(pause))
		}
		looked[l] = n
	}
	for _, m := range machines {
		u.requestUpdate(m, now, at)
		m.forceRead, m.worker.readCount = true, looked[m.worker]
	}
}

// scheduleAt schedules the worker at the given time or earlier. It requires u.mu.
func (u *Updater) scheduleAt(l *worker, at time.Time) {
	l.due = ratelimit.MinTime(l.due, at)
	u.activeWorkers[l.key] = l
}

// setState also records pools that have become idle: nothing is working, or a wait has ended. It
// requires u.mu.
func (u *Updater) setState(m *machine, s state) {
	before := m.state
	m.state = s
	if s == stateDone {
		m.stopTimer(u.cfg.Metrics, time.Now())
	}
	for key, p := range m.pools {
		switch {
		case before != stateWorking && s == stateWorking:
			p.workingCount++
		case before == stateWorking && s != stateWorking:
			p.workingCount--
		}
		if s == stateDone && p.roles[m.key] == roleModelCheck {
			p.roles[m.key] = roleModelChecked
		}
		ended := before == stateWorking || before == stateWaiting && (s == stateDone || s == stateFailed)
		if ended && p.workingCount == 0 {
			u.idlePools[key] = p.target.ID
		}
	}
}

// removeIfUnused removes a machine that no pool names, and its worker with the last one. It requires u.mu.
func (u *Updater) removeIfUnused(m *machine) {
	for key, p := range m.pools {
		if p.roles[m.key] == 0 && m.state == stateDone {
			delete(p.machines, m.key)
			delete(m.pools, key)
		}
	}
	l := m.worker
	if len(m.pools) > 0 || l.running {
		return
	}
	delete(l.machines, m.key)
	if len(l.machines) == 0 {
		delete(u.workers, l.key)
		delete(u.activeWorkers, l.key)
	}
}

func compareKeys(a, b nic.Machine) int { return cmp.Compare(a.Key(), b.Key()) }
