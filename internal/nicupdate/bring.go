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
	member    role = iota + 1
	leaver         // Azure shows it in the pool, and it must leave
	witness        // its scale set model may name the pool, though no instance is a member
	witnessed      // the model was checked
)

type pool struct {
	target nic.Target
	roles  map[string]role // by machine
	// machines are those of the target, and of earlier targets until they are done.
	machines map[string]*machine
	working  int
	// cleared is true for an empty pool that no scale set names.
	cleared bool
}

// Bring sets the target of a pool and returns the state of its machines. It does not block.
//
// A machine is read if its role changed, if Azure still shows it in a pool it must leave, or if its
// failure was reported. Otherwise, if nothing is working, members that Azure does not show are read
// again with backoff.
func (u *Updater) Bring(t nic.Target) nic.State {
	roles, machines := rolesOf(t)
	lacks := make(map[string]bool, len(t.Lacks))
	for _, m := range t.Lacks {
		lacks[m.Key()] = true
	}
	var nodes []nic.Node
	if len(t.Members) == 0 {
		nodes = u.cfg.Cluster.Machines()
	}
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	defer u.signal()
	if u.handed != nil {
		u.handed[t.ID.Key()] = true
	}
	p := u.pools[t.ID.Key()]
	if p == nil {
		p = &pool{machines: map[string]*machine{}}
		u.pools[t.ID.Key()] = p
	}
	all, looking := !sameKind(p.target.Pool, t.Pool), false
	empty := len(t.Members)+len(t.Leaves) == 0
	switch {
	case empty && p.cleared:
		p.keepsWitnesses(roles, machines)
	case len(t.Members) == 0:
		looking = u.witnesses(roles, machines, nodes, now)
	}
	was := p.roles
	for key, r := range roles {
		if r == witness && was[key] == witnessed && !all {
			roles[key] = witnessed
		}
	}
	changed := all || !maps.Equal(was, roles)
	p.target, p.roles = t, roles
	for key, m := range machines {
		u.link(p, t.ID.Key(), key, m)
	}
	var failed []nic.Failure
	var found []*machine // found in sync
	for key, m := range p.machines {
		switch {
		case all || was[key] != roles[key]:
			u.ask(m, now, now.Add(gather))
			m.look = roles[key] == leaver || roles[key] == witness
		case m.state == failing && m.told[t.ID.Key()]:
			u.ask(m, now, now.Add(gather))
			m.look = true
		case m.state == failing:
			m.told[t.ID.Key()] = true
			failed = append(failed, nic.Failure{Machine: m.Machine, Err: m.err})
		case m.state == done && (lacks[key] && !changed || roles[key] == leaver):
			found = append(found, m)
		}
	}
	if changed {
		u.changes(now)
	}
	if changed || p.working == 0 && len(failed) == 0 {
		u.lookAgain(found, now)
	}
	state := p.known(failed)
	state.Looking = looking
	p.cleared = empty && !looking && len(state.Working)+len(state.Waits)+len(state.Failed) == 0
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
	u.changes(time.Now())
	defer u.signal()
	for _, m := range p.machines {
		delete(m.pools, key)
		u.reap(m)
	}
}

// changes schedules a plan for machines that the changed pool does not name but may move. It
// requires u.mu.
func (u *Updater) changes(now time.Time) {
	if !u.stale {
		u.stale, u.staleAt = true, now.Add(gather)
	}
}

func rolesOf(t nic.Target) (map[string]role, map[string]nic.Machine) {
	n := len(t.Members) + len(t.Leaves)
	roles, machines := make(map[string]role, n), make(map[string]nic.Machine, n)
	for _, m := range t.Leaves {
		roles[m.Key()], machines[m.Key()] = leaver, m
	}
	for _, m := range t.Members {
		roles[m.Key()], machines[m.Key()] = member, m
	}
	return roles, machines
}

// sameKind reports whether two pools differ only in members.
func sameKind(a, b nic.Pool) bool {
	return a.ID.Key() == b.ID.Key() && a.Family == b.Family && a.Configuration == b.Configuration && a.Every == b.Every
}

func (p *pool) known(failed []nic.Failure) nic.State {
	s := nic.State{Failed: failed}
	slices.SortFunc(s.Failed, func(a, b nic.Failure) int { return byKey(a.Machine, b.Machine) })
	for key, m := range p.machines {
		if p.roles[key] == witnessed { // it is working for another pool
			continue
		}
		switch m.state {
		case working:
			s.Working = append(s.Working, m.Machine)
		case waiting:
			wait := nic.MachineWait{Machine: m.Machine, Why: m.why}
			if m.unusable {
				s.Unusable = append(s.Unusable, wait)
			} else {
				s.Waits = append(s.Waits, wait)
			}
		}
	}
	slices.SortFunc(s.Working, byKey)
	for _, all := range [][]nic.MachineWait{s.Waits, s.Unusable} {
		slices.SortFunc(all, func(a, b nic.MachineWait) int { return byKey(a.Machine, b.Machine) })
	}
	return s
}
