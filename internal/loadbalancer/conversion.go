// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// An Azure pool holds either addresses or network interfaces. To convert a shared pool, its rules first move to
// an interim pool of addresses, which one write fills in either direction. The next step follows from Azure's
// state and the existing BackendPools, so a new leader can continue.

// conversion is a shared pool that still has, or gets from its BackendPool, the other kind of members.
type conversion struct {
	// pool is the shared pool, interim its temporary replacement and id the ARM ID of the shared pool.
	pool, interim string
	id            lb.PoolID
	// foreignMembers are the foreign members; the next field is any other reason to retain the pool.
	foreignMembers []string
	reason         string
}

func (c *conversion) isBlocked() bool { return len(c.foreignMembers) > 0 || c.reason != "" }

func (c *conversion) retainedPool() plan.RetainedPart {
	return plan.RetainedPart{Pool: c.id, Members: c.foreignMembers, IsConversion: true, Reason: c.reason}
}

// poolConversions returns the shared pools to convert; none unless azure.json sets the kind.
func (l *loadBalancer) poolConversions(ctx context.Context, observed lb.LoadBalancer) ([]*conversion, error) {
	if !l.cfg.ConvertsPools {
		return nil, nil
	}
	var conversions []*conversion
	for i, name := range l.cfg.SharedPools() {
		id := lb.PoolID{LoadBalancer: l.id, Name: name}
		pool, _ := poolNamed(observed, name)
		pool.ID = id
		other := len(pool.Addresses) > 0 && pool.NIC != l.cfg.Interfaces
		converts, paused := l.cfg.Cluster.ConversionState(id)
		if !other && !converts {
			continue
		}
		c := &conversion{pool: name, interim: l.cfg.TemporaryPools()[i], id: id}
		switch {
		case observed.Pinned[strings.ToLower(name)]:
			c.reason = "an outbound or inbound NAT rule refers to it"
		case paused:
			c.reason = "its BackendPool is paused"
		}
		conversions = append(conversions, c)
		if !other {
			continue
		}
		var err error
		if pool.NIC {
			if pool, err = l.cfg.Azure.ResolveMachines(ctx, pool); err != nil {
				return nil, fmt.Errorf("machines of pool %s: %w", name, err)
			}
		}
		if c.foreignMembers, err = l.cfg.Cluster.ForeignMembers(ctx, pool); err != nil {
			return nil, err
		}
	}
	return conversions, nil
}

// setInterimPools gives a job the pools and rules it can have for now: interim pools replace unconverted ones. A pool
// that cannot be converted keeps its rules. A dry run shows the final state; recordConversions reports the steps.
func (l *loadBalancer) setInterimPools(j *job, observed lb.LoadBalancer, conversions []*conversion) {
	j.Pools, j.rules, j.conversions = slices.Clone(j.localSpec.Pools), slices.Clone(j.localSpec.Rules), nil
	for i, p := range j.Pools {
		at := slices.IndexFunc(conversions, func(c *conversion) bool { return p.Shared && strings.EqualFold(c.pool, p.Name) })
		if at < 0 {
			continue
		}
		c := conversions[at]
		j.conversions = append(j.conversions, c)
		_, exists := poolNamed(observed, c.interim)
		if l.cfg.SkipDrain || c.isBlocked() && (!exists || j.hasRuleFor(observed, c.pool)) {
			j.Pools[i].Interfaces = !p.Interfaces
			continue
		}
		j.Pools[i] = service.Pool{Name: c.interim, Family: p.Family, Shared: true}
		for n := range j.rules {
			if strings.EqualFold(j.rules[n].Pool, p.Name) {
				j.rules[n].Pool = c.interim
			}
		}
	}
}

func (j *job) hasRuleFor(observed lb.LoadBalancer, pool string) bool {
	return slices.ContainsFunc(observed.Rules, func(r lb.Rule) bool {
		return hasPrefixFold(r.Name, j.Owner) && strings.EqualFold(r.Pool, pool)
	})
}

func (j *job) needsInterim(c *conversion) bool {
	return slices.ContainsFunc(j.Pools, func(p service.Pool) bool { return p.Name == c.interim })
}

// replacedPools returns the shared pools to delete once no rule refers to them: replaced pools and unneeded interim
// pools.
func (l *loadBalancer) replacedPools(jobs []*job, observed lb.LoadBalancer, conversions []*conversion) []string {
	names := l.cfg.TemporaryPools()
	for _, c := range conversions {
		taken := slices.ContainsFunc(jobs, func(j *job) bool { return !j.isLeaving() && j.needsInterim(c) })
		if taken || observed.CountRules(c.pool) > 0 {
			names = slices.DeleteFunc(names, func(name string) bool { return name == c.interim })
		}
		if taken && !c.isBlocked() {
			names = append(names, c.pool)
		}
	}
	return names
}

func (l *loadBalancer) recordConversions(j *job, observed lb.LoadBalancer) {
	for _, c := range j.conversions {
		if c.isBlocked() {
			j.recordRetained([]plan.RetainedPart{c.retainedPool()})
			continue
		}
		e := plan.DrainingPool{Pool: c.id, Interim: c.interim, ToInterfaces: l.cfg.Interfaces, Rules: observed.CountRules(c.pool)}
		if pool, exists := poolNamed(observed, c.pool); exists && pool.NIC {
			e.Interfaces = len(pool.Addresses)
		}
		j.DrainingPools = append(j.DrainingPools, e)
	}
}
