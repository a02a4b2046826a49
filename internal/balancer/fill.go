// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// fresh is what a pool holds in the write that makes it: nothing, unless Azure is known to fill
// new pools by the write of their load balancer. The pool's lane fills it, on record first. What
// is to be Down is left to the lane in either case: a pool that is being made has no record yet,
// and a Down that is on no record is nobody's to take back. To new flows it is the same.
func (l *loadBalancer) fresh(j *job, p service.Pool) []lb.Address {
	if l.cfg.Behaviour.WholeWriteNewPools != behaviour.Filled {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.cfg.Cluster.Fresh(j.Service, l.id, p)), func(a lb.Address) bool { return a.AdminState == lb.Down })
}

// awaited are the pools that a job's rules are to send flows to, and that have no member
// although some are to be in them: the write that makes a pool does not fill it.
func (l *loadBalancer) awaited(j *job, observed lb.LoadBalancer) []lb.PoolID {
	if j.leaves() || j.Desired == nil {
		return nil
	}
	var all []lb.PoolID
	for _, p := range j.Desired.Pools {
		is, there := poolNamed(observed, p.Name)
		filled := there && (len(is.Addresses) > 0 || is.NIC) || !there && len(l.fresh(j, p)) > 0
		if !filled && l.cfg.Cluster.Awaits(j.Service, l.id, p) {
			all = append(all, lb.PoolID{LoadBalancer: l.id, Name: p.Name})
		}
	}
	return all
}

func poolNamed(b lb.LoadBalancer, name string) (lb.Pool, bool) {
	at := slices.IndexFunc(b.Pools, func(p lb.Pool) bool { return strings.EqualFold(p.ID.Name, name) })
	if at < 0 {
		return lb.Pool{}, false
	}
	return b.Pools[at], true
}

// staying returns the rules, and the awaited pools that some of them wait for: one whose flows
// have somewhere to go keeps that until the pool where they are to go is filled.
func staying(rules []lb.Rule, observed lb.LoadBalancer, awaited []lb.PoolID) (stay []lb.Rule, waits []lb.PoolID) {
	stay = slices.Clone(rules)
	for i, r := range stay {
		to := slices.IndexFunc(awaited, func(id lb.PoolID) bool { return strings.EqualFold(id.Name, r.Pool) })
		at := slices.IndexFunc(observed.Rules, func(is lb.Rule) bool { return strings.EqualFold(is.Name, r.Name) })
		if to < 0 || at < 0 || strings.EqualFold(observed.Rules[at].Pool, r.Pool) {
			continue
		}
		if goes, _ := poolNamed(observed, observed.Rules[at].Pool); len(goes.Addresses) == 0 && !goes.NIC {
			continue
		}
		stay[i].Pool = observed.Rules[at].Pool
		if !slices.Contains(waits, awaited[to]) {
			waits = append(waits, awaited[to])
		}
	}
	return stay, waits
}

// hold notes which rules of the jobs stay with the pools that they have, by what was read, and
// for which pools that is. Whoever moves to another load balancer, and need not leave before he
// arrives, keeps what he has until the pools there are filled.
func (l *loadBalancer) hold(jobs []*job, observed lb.LoadBalancer) {
	for _, j := range jobs {
		j.rules, j.Filling = nil, nil
		if j.Desired == nil || j.leaves() {
			continue
		}
		awaited := l.awaited(j, observed)
		j.rules, j.Filling = staying(j.Desired.Rules, observed, awaited)
		if slices.ContainsFunc(j.steps, func(s step) bool { return s.leaves }) {
			j.Filling = awaited
		}
	}
}

// waitsForFill ends what a job cannot do before its pools are filled, and reports whether there
// is anything.
func (j *job) waitsForFill() bool {
	if len(j.Filling) == 0 {
		return false
	}
	if slices.ContainsFunc(j.steps, func(s step) bool { return s.leaves }) {
		j.steps = nil // nor is the way to what it has closed
	}
	return true
}
