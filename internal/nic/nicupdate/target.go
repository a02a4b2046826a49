// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

type role int

const (
	roleMember       role = iota + 1
	roleRemoved           // Azure shows it in the pool, and it must leave
	roleModelCheck        // its scale set model may name the pool, though no instance is a member
	roleModelChecked      // the model was checked
)

type pool struct {
	target nic.Target
	roles  map[string]role // by machine
	// machines are those of the target, and of earlier targets until they are done.
	machines     map[string]*machine
	workingCount int
	// isEmpty is true for an empty pool that no scale set names.
	isEmpty bool
}

// SetTarget sets the target of a pool and returns the state of its machines. It does not block.
//
// A machine is read if its role changed, if Azure still shows it in a pool it must leave, or if its
// failure was reported. Otherwise, if nothing is working, members that Azure does not show are read
// again with backoff.
func (u *Updater) SetTarget(t nic.Target) nic.State {
	roles, machines := machineRoles(t)
	missing := make(map[string]bool, len(t.Missing))
	for _, m := range t.Missing {
		missing[m.Key()] = true
	}
	var nodes []nic.Node
	if len(t.Members) == 0 {
		nodes = u.cfg.Cluster.Machines()
	}
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	defer u.signal()
	if u.knownTargets != nil {
		u.knownTargets[t.ID.Key()] = true
	}
	p := u.pools[t.ID.Key()]
	if p == nil {
		p = &pool{machines: map[string]*machine{}}
		u.pools[t.ID.Key()] = p
	}
	replaced, checking := !isSamePool(p.target.Pool, t.Pool), false
	empty := len(t.Members)+len(t.ToRemove) == 0
	switch {
	case empty && p.isEmpty:
		p.retainCheckedModels(roles, machines)
	case len(t.Members) == 0:
		checking = u.addModelChecks(roles, machines, nodes, now)
	}
	old := p.roles
	for key, r := range roles {
		if r == roleModelCheck && old[key] == roleModelChecked && !replaced {
			roles[key] = roleModelChecked
		}
	}
	changed := replaced || !maps.Equal(old, roles)
	p.target, p.roles = t, roles
	for key, m := range machines {
		u.addMachine(p, t.ID.Key(), key, m)
	}
	var failed []nic.Failure
	var found []*machine // found in sync
	for key, m := range p.machines {
		switch {
		case replaced || old[key] != roles[key]:
			u.requestUpdate(m, now, now.Add(batchDelay))
			m.forceRead = roles[key] == roleRemoved || roles[key] == roleModelCheck
		case m.state == stateFailed && m.notified[t.ID.Key()]:
			u.requestUpdate(m, now, now.Add(batchDelay))
			m.forceRead = true
		case m.state == stateFailed:
			m.notified[t.ID.Key()] = true
			failed = append(failed, nic.Failure{Machine: m.Machine, Err: m.err})
		case m.state == stateDone && (missing[key] && !changed || roles[key] == roleRemoved):
			found = append(found, m)
		}
	}
	if changed {
		u.schedulePlan(now)
	}
	if changed || p.workingCount == 0 && len(failed) == 0 {
		u.requestReads(found, now)
	}
	state := p.buildState(failed)
	state.ScaleSetsUnknown = checking
	p.isEmpty = empty && !checking && len(state.Working)+len(state.Waiting)+len(state.Failed) == 0
	return state
}

// Forget removes a pool. Its members become foreign.
func (u *Updater) Forget(id lb.PoolID) {
	key := id.Key()
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.pools[key]
	if p == nil {
		return
	}
	delete(u.pools, key)
	u.schedulePlan(time.Now())
	defer u.signal()
	for _, m := range p.machines {
		delete(m.pools, key)
		u.removeIfUnused(m)
	}
}

// schedulePlan schedules a plan for machines that the changed pool does not name but may move. It
// requires u.mu.
func (u *Updater) schedulePlan(now time.Time) {
	if !u.planStale {
		u.planStale, u.planDueAt = true, now.Add(batchDelay)
	}
}

func machineRoles(t nic.Target) (map[string]role, map[string]nic.Machine) {
	n := len(t.Members) + len(t.ToRemove)
	roles, machines := make(map[string]role, n), make(map[string]nic.Machine, n)
	for _, m := range t.ToRemove {
		roles[m.Key()], machines[m.Key()] = roleRemoved, m
	}
	for _, m := range t.Members {
		roles[m.Key()], machines[m.Key()] = roleMember, m
	}
	return roles, machines
}

// isSamePool reports whether two pools differ only in members.
func isSamePool(a, b nic.Pool) bool {
	return a.ID.Key() == b.ID.Key() && a.Family == b.Family && a.Configuration == b.Configuration && a.AllNodes == b.AllNodes
}

func (p *pool) buildState(failed []nic.Failure) nic.State {
	s := nic.State{Failed: failed}
	slices.SortFunc(s.Failed, func(a, b nic.Failure) int { return compareKeys(a.Machine, b.Machine) })
	for key, m := range p.machines {
		if p.roles[key] == roleModelChecked { // it is working for another pool
			continue
		}
		switch m.state {
		case stateWorking:
			s.Working = append(s.Working, m.Machine)
		case stateWaiting:
			wait := nic.WaitingMachine{Machine: m.Machine, Reason: m.reason}
			if m.unusable {
				s.Unavailable = append(s.Unavailable, wait)
			} else {
				s.Waiting = append(s.Waiting, wait)
			}
		}
	}
	slices.SortFunc(s.Working, compareKeys)
	for _, machines := range [][]nic.WaitingMachine{s.Waiting, s.Unavailable} {
		slices.SortFunc(machines, func(a, b nic.WaitingMachine) int { return compareKeys(a.Machine, b.Machine) })
	}
	return s
}
