// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// fresh returns the initial members of a new pool: none, unless Azure is known to fill pools in the load
// balancer's write. Admin state Down is left to the pool updater, which records it first; an unrecorded Down
// would never be reset. Network interfaces join by themselves, and cannot join a pool that contains addresses.
func (l *loadBalancer) fresh(j *job, p service.Pool) []lb.Address {
	if p.Interfaces || l.cfg.Behaviour.WholeWriteNewPools != behaviour.Filled {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.cfg.Cluster.Fresh(j.Service, l.id, p)), func(a lb.Address) bool { return a.AdminState == lb.Down })
}

func (l *loadBalancer) awaited(j *job, observed lb.LoadBalancer, members func(lb.Pool) (lb.Pool, error)) ([]lb.PoolID, error) {
	var all []lb.PoolID
	for _, p := range j.Pools {
		is, exists := poolNamed(observed, p.Name)
		if !exists && len(l.fresh(j, p)) > 0 {
			continue
		}
		pending := l.cfg.Cluster.Awaits(j.Service, l.id, p, is)
		if !pending && is.NIC && !l.cfg.Emptied && j.arrives(observed, p.Name) {
			is, err := members(is)
			if err != nil {
				return nil, err
			}
			pending = l.cfg.Cluster.Awaits(j.Service, l.id, p, is)
		}
		if pending {
			all = append(all, lb.PoolID{LoadBalancer: l.id, Name: p.Name})
		}
	}
	return all, nil
}

func (j *job) arrives(observed lb.LoadBalancer, pool string) bool {
	return j.leavesLater() || slices.ContainsFunc(j.rules, func(r lb.Rule) bool {
		at := slices.IndexFunc(observed.Rules, func(is lb.Rule) bool { return strings.EqualFold(is.Name, r.Name) })
		return strings.EqualFold(r.Pool, pool) && at >= 0 && !strings.EqualFold(observed.Rules[at].Pool, pool)
	})
}

func (j *job) leavesLater() bool {
	return slices.ContainsFunc(j.steps, func(s step) bool { return s.leaves })
}

// nodesIn returns a function that removes foreign members from a pool of network interfaces. It calls Azure
// once per pool.
func (l *loadBalancer) nodesIn(ctx context.Context) func(lb.Pool) (lb.Pool, error) {
	known := map[string]lb.Pool{}
	return func(is lb.Pool) (lb.Pool, error) {
		name := strings.ToLower(is.ID.Name)
		if has, ok := known[name]; ok {
			return has, nil
		}
		is.ID.LoadBalancer = l.id
		is, err := l.cfg.Azure.Machines(ctx, is)
		if err != nil {
			return is, fmt.Errorf("machines of pool %s: %w", is.ID.Name, err)
		}
		theirs, err := l.cfg.Cluster.Foreign(ctx, is)
		if err != nil {
			return is, err
		}
		is.Addresses = is.Addresses[min(len(theirs), len(is.Addresses)):] // only the number of interfaces matters
		known[name] = is
		return is, nil
	}
}

func poolNamed(b lb.LoadBalancer, name string) (lb.Pool, bool) {
	at := slices.IndexFunc(b.Pools, func(p lb.Pool) bool { return strings.EqualFold(p.ID.Name, name) })
	if at < 0 {
		return lb.Pool{}, false
	}
	return b.Pools[at], true
}

// staying returns the rules that keep their present pool, and the pools they wait for, until these are filled.
func staying(rules []lb.Rule, observed lb.LoadBalancer, awaited []lb.PoolID, converting []*conversion) (stay []lb.Rule, pending []lb.PoolID) {
	stay = slices.Clone(rules)
	for i, r := range stay {
		to := slices.IndexFunc(awaited, func(id lb.PoolID) bool { return strings.EqualFold(id.Name, r.Pool) })
		from := whereFlowsAre(r, observed, converting)
		if to < 0 || from == "" || strings.EqualFold(from, r.Pool) {
			continue
		}
		if goes, _ := poolNamed(observed, from); len(goes.Addresses) == 0 && !goes.NIC {
			continue
		}
		stay[i].Pool = from
		if !slices.Contains(pending, awaited[to]) {
			pending = append(pending, awaited[to])
		}
	}
	return stay, pending
}

// whereFlowsAre returns the pool that a rule uses until its new pool is filled; empty for none. A new rule has
// no flows, but an interim pool may never fill: the new rule joins the rules that wait for it.
func whereFlowsAre(r lb.Rule, observed lb.LoadBalancer, converting []*conversion) string {
	at := slices.IndexFunc(observed.Rules, func(is lb.Rule) bool { return strings.EqualFold(is.Name, r.Name) })
	if at >= 0 {
		return observed.Rules[at].Pool
	}
	of := slices.IndexFunc(converting, func(c *conversion) bool { return strings.EqualFold(c.interim, r.Pool) })
	if of < 0 || observed.RulesTo(converting[of].pool) == 0 {
		return ""
	}
	return converting[of].pool
}

// hold records which rules of the jobs keep their pools, and the pools that must fill first. A Service that
// moves to another load balancer keeps its rules until the new pools are filled.
func (l *loadBalancer) hold(ctx context.Context, jobs []*job, observed lb.LoadBalancer, converting []*conversion) error {
	members := l.nodesIn(ctx)
	for _, j := range jobs {
		j.rules, j.converting, j.Filling = nil, nil, nil
		if j.Desired == nil || j.leaves() { // a leaving Service waits for the pools of its new load balancer
			continue
		}
		l.detour(j, observed, converting)
		awaited, err := l.awaited(j, observed, members)
		if err != nil {
			return err
		}
		j.rules, j.Filling = staying(j.rules, observed, awaited, j.converting)
		if j.leavesLater() {
			j.Filling = awaited
		}
	}
	return nil
}

// waitsForFill truncates a job at the step that must wait for its pools and reports whether it must wait.
func (j *job) waitsForFill() bool {
	if len(j.Filling) == 0 {
		return false
	}
	if j.leavesLater() {
		j.steps = nil // the security group is not closed either
	}
	return true
}
