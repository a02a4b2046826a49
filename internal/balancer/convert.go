// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// Azure mixes no addresses with network interfaces in one pool. So where the shared pool of a load
// balancer is to hold the other kind, its rules send flows to an interim pool of addresses meanwhile: that
// is filled by one write, whatever the direction. What is done next follows from what Azure shows, and
// from the BackendPools that there are, so whoever starts in the middle goes on.

// conversion is a shared pool that is of the other kind yet: Azure shows members of that kind, or a
// BackendPool of Weir's puts them there.
type conversion struct {
	// pool is the name of the shared pool, interim that of the one that stands in for it, and id where
	// the shared one is.
	pool, interim string
	id            lb.PoolID
	// theirs are the members that somebody else has put there, and why says what else keeps it as it is.
	theirs []string
	why    string
}

// keeps reports whether a shared pool cannot become one of the other kind.
func (c *conversion) keeps() bool { return len(c.theirs) > 0 || c.why != "" }

// kept is what people are told of that.
func (c *conversion) kept() plan.Kept {
	return plan.Kept{Pool: c.id, Members: c.theirs, Converting: true, Why: c.why}
}

// conversions are those of a load balancer's shared pools; none unless azure.json names the kind.
func (l *loadBalancer) conversions(ctx context.Context, observed lb.LoadBalancer) ([]*conversion, error) {
	if !l.cfg.Converts {
		return nil, nil
	}
	var all []*conversion
	for i, name := range l.cfg.SharedPools() {
		id := lb.PoolID{LoadBalancer: l.id, Name: name}
		is, _ := poolNamed(observed, name)
		is.ID = id
		other := len(is.Addresses) > 0 && is.NIC != l.cfg.Interfaces
		converts, paused := l.cfg.Cluster.Converts(id)
		if !other && !converts {
			continue
		}
		c := &conversion{pool: name, interim: l.cfg.InterimPools()[i], id: id}
		switch {
		case observed.Pinned[strings.ToLower(name)]:
			c.why = "an outbound or inbound NAT rule refers to it"
		case paused:
			c.why = "its BackendPool is paused"
		}
		all = append(all, c)
		if !other {
			continue
		}
		var err error
		if is.NIC {
			if is, err = l.cfg.Azure.Machines(ctx, is); err != nil {
				return nil, fmt.Errorf("machines of pool %s: %w", name, err)
			}
		}
		if c.theirs, err = l.cfg.Cluster.Foreign(ctx, is); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// detour gives a job the pools and rules that it can have for now: interim pools in the place of those
// that are of the other kind yet. One that cannot become of this kind stays, with all that sends flows
// to it. A rehearsal shows the end, and says of the way there what noteConversions does.
func (l *loadBalancer) detour(j *job, observed lb.LoadBalancer, all []*conversion) {
	j.Pools, j.rules, j.converting = slices.Clone(j.wanted.Pools), slices.Clone(j.wanted.Rules), nil
	for i, p := range j.Pools {
		at := slices.IndexFunc(all, func(c *conversion) bool { return p.Shared && strings.EqualFold(c.pool, p.Name) })
		if at < 0 {
			continue
		}
		c := all[at]
		j.converting = append(j.converting, c)
		_, there := poolNamed(observed, c.interim)
		if l.cfg.Emptied || c.keeps() && (!there || j.uses(observed, c.pool)) {
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

// uses reports whether a rule of a job sends flows to a pool.
func (j *job) uses(observed lb.LoadBalancer, pool string) bool {
	return slices.ContainsFunc(observed.Rules, func(r lb.Rule) bool {
		return hasPrefixFold(r.Name, j.Owner) && strings.EqualFold(r.Pool, pool)
	})
}

// takes reports whether a job has its flows sent to the interim pool of a conversion.
func (j *job) takes(c *conversion) bool {
	return slices.ContainsFunc(j.Pools, func(p service.Pool) bool { return p.Name == c.interim })
}

// retired are the shared pools that go as soon as no rule refers to them: one that rules have left for
// its interim pool, and an interim pool that nobody needs any more, or that nobody is to come to from the
// shared one.
func (l *loadBalancer) retired(jobs []*job, observed lb.LoadBalancer, all []*conversion) []string {
	names := l.cfg.InterimPools()
	for _, c := range all {
		taken := slices.ContainsFunc(jobs, func(j *job) bool { return !j.leaves() && j.takes(c) })
		if taken || observed.RulesTo(c.pool) > 0 {
			names = slices.DeleteFunc(names, func(name string) bool { return name == c.interim })
		}
		if taken && !c.keeps() {
			names = append(names, c.pool)
		}
	}
	return names
}

// noteConversions notes what of the pools that a job needs is of the other kind yet, and what is waited for.
func (l *loadBalancer) noteConversions(j *job, shown lb.LoadBalancer) {
	for _, c := range j.converting {
		if c.keeps() {
			j.noteKept([]plan.Kept{c.kept()})
			continue
		}
		e := plan.Emptying{Pool: c.id, Interim: c.interim, Joined: l.cfg.Interfaces, Rules: shown.RulesTo(c.pool)}
		if is, there := poolNamed(shown, c.pool); there && is.NIC {
			e.Interfaces = len(is.Addresses)
		}
		j.Emptying = append(j.Emptying, e)
	}
}
