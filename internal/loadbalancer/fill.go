// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

func (l *loadBalancer) poolsToFill(j *job, observed lb.LoadBalancer, members func(lb.Pool) (lb.Pool, error)) ([]lb.PoolID, error) {
	var pools []lb.PoolID
	for _, p := range j.Pools {
		pool, _ := poolNamed(observed, p.Name)
		pending := l.cfg.Cluster.NeedsMembers(j.Service, l.id, p, pool)
		if !pending && pool.NIC && !l.cfg.SkipDrain && j.isMovingTo(observed, p.Name) {
			got, err := members(pool)
			if err != nil {
				return nil, err
			}
			pending = l.cfg.Cluster.NeedsMembers(j.Service, l.id, p, got)
		}
		if pending {
			pools = append(pools, lb.PoolID{LoadBalancer: l.id, Name: p.Name})
		}
	}
	return pools, nil
}

func (j *job) isMovingTo(observed lb.LoadBalancer, pool string) bool {
	return j.hasLaterRemoval() || slices.ContainsFunc(j.rules, func(r lb.Rule) bool {
		at := slices.IndexFunc(observed.Rules, func(rule lb.Rule) bool { return strings.EqualFold(rule.Name, r.Name) })
		return strings.EqualFold(r.Pool, pool) && at >= 0 && !strings.EqualFold(observed.Rules[at].Pool, pool)
	})
}

func (j *job) hasLaterRemoval() bool {
	return j.KeepFormer || slices.ContainsFunc(j.steps, func(s step) bool { return s.remove })
}

// nodesIn returns a function that removes foreign members from a pool of network interfaces. It calls Azure
// once per pool.
func (l *loadBalancer) nodesIn(ctx context.Context) func(lb.Pool) (lb.Pool, error) {
	known := map[string]lb.Pool{}
	return func(pool lb.Pool) (lb.Pool, error) {
		name := strings.ToLower(pool.ID.Name)
		if pool, ok := known[name]; ok {
			return pool, nil
		}
		pool.ID.LoadBalancer = l.id
		pool, err := l.cfg.Azure.ResolveMachines(ctx, pool)
		if err != nil {
			return pool, fmt.Errorf("machines of pool %s: %w", pool.ID.Name, err)
		}
		foreign, err := l.cfg.Cluster.ForeignMembers(ctx, pool)
		if err != nil {
			return pool, err
		}
		pool.Addresses = pool.Addresses[min(len(foreign), len(pool.Addresses)):] // only the number of interfaces matters
		known[name] = pool
		return pool, nil
	}
}

func poolNamed(b lb.LoadBalancer, name string) (lb.Pool, bool) {
	at := slices.IndexFunc(b.Pools, func(p lb.Pool) bool { return strings.EqualFold(p.ID.Name, name) })
	if at < 0 {
		return lb.Pool{}, false
	}
	return b.Pools[at], true
}

// rulesToHold returns the rules that keep their present pool, and the pools they wait for, until these are filled.
func rulesToHold(rules []lb.Rule, observed lb.LoadBalancer, awaited []lb.PoolID, converting []*conversion) (stay []lb.Rule, pending []lb.PoolID) {
	stay = slices.Clone(rules)
	for i, r := range stay {
		to := slices.IndexFunc(awaited, func(id lb.PoolID) bool { return strings.EqualFold(id.Name, r.Pool) })
		from := currentPool(r, observed, converting)
		if to < 0 || from == "" || strings.EqualFold(from, r.Pool) {
			continue
		}
		if replaced, _ := poolNamed(observed, from); len(replaced.Addresses) == 0 && !replaced.NIC {
			continue
		}
		stay[i].Pool = from
		if !slices.Contains(pending, awaited[to]) {
			pending = append(pending, awaited[to])
		}
	}
	return stay, pending
}

// currentPool returns the pool that a rule uses until its new pool is filled; empty for none. A new rule has
// no flows, but an interim pool may never fill: the new rule joins the rules that wait for it.
func currentPool(r lb.Rule, observed lb.LoadBalancer, converting []*conversion) string {
	at := slices.IndexFunc(observed.Rules, func(rule lb.Rule) bool { return strings.EqualFold(rule.Name, r.Name) })
	if at >= 0 {
		return observed.Rules[at].Pool
	}
	of := slices.IndexFunc(converting, func(c *conversion) bool { return strings.EqualFold(c.interim, r.Pool) })
	if of < 0 || observed.CountRules(converting[of].pool) == 0 {
		return ""
	}
	return converting[of].pool
}

// holdRules records which rules of the jobs keep their pools, and the pools that must fill first. A Service that
// moves to another load balancer keeps its rules until the new pools are filled.
func (l *loadBalancer) holdRules(ctx context.Context, jobs []*job, observed lb.LoadBalancer, converting []*conversion) error {
	members := l.nodesIn(ctx)
	for _, j := range jobs {
		j.rules, j.conversions, j.FillingPools = nil, nil, nil
		if j.Desired == nil || j.isLeaving() { // a leaving Service waits for the pools of its new load balancer
			continue
		}
		l.setInterimPools(j, observed, converting)
		awaited, err := l.poolsToFill(j, observed, members)
		if err != nil {
			return err
		}
		j.rules, j.FillingPools = rulesToHold(j.rules, observed, awaited, j.conversions)
		if j.hasLaterRemoval() {
			j.FillingPools = awaited
		}
	}
	return nil
}

// holdForFill truncates a job at the step that must wait for its pools and reports whether it must wait.
func (j *job) holdForFill() bool {
	if len(j.FillingPools) == 0 {
		return false
	}
	if j.hasLaterRemoval() {
		j.steps = nil // the security group is not closed either
	}
	return true
}
