// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"slices"
	"strings"

	"weir.dev/weir/internal/securitygroup"
)

// guard has the security group admit whom Services say. Its round alone writes the group, and
// holds up no load balancer. It is of one goroutine.
type guard struct {
	*Balancers
	// refusals are those of the group.
	refusals refusals
}

// round makes the next step of these jobs.
func (g *guard) round(ctx context.Context, jobs []*job) {
	// In which order load balancers are ready is chance: priorities are not to depend on it.
	slices.SortStableFunc(jobs, func(a, b *job) int { return strings.Compare(a.Service, b.Service) })
	jobs = g.lookUp(ctx, g.due(ctx, jobs, &g.refusals, ""))
	level := g.search(&g.refusals, "").among(ctx, jobs, func(ctx context.Context, jobs []*job) error {
		demands := g.demands(jobs)
		err := g.group.Write(ctx, demands, logFor(g.cfg.Log, "securityGroup", g.cfg.SecurityGroup.Name, jobs))
		settle(jobs, demands)
		return err
	})
	for _, j := range level {
		j.steps = j.steps[1:]
		g.refusals.forget(j)
		g.former.forget(j.Owner)
		g.next(j)
	}
}

// demands are what the jobs ask of the group.
func (g *guard) demands(jobs []*job) []*securitygroup.Request {
	all := make([]*securitygroup.Request, len(jobs))
	for i, j := range jobs {
		g.former.note(j.Owner, j.Addresses) // should the outcome stay unknown
		all[i] = &securitygroup.Request{Demand: securitygroup.Demand{
			Service: j.Service, Owner: j.Owner, Desired: j.Desired, Addresses: j.Addresses, Shown: j.Shown,
			Had: g.former.addresses(j.Owner), On: j.On, Again: j.Again,
		}}
	}
	return all
}

// settle notes on the jobs what came of what they asked of the group.
func settle(jobs []*job, asked []*securitygroup.Request) {
	for i, j := range jobs {
		j.contested(asked[i].Contest)
		if j.refused = asked[i].Err; j.refused == nil {
			j.Changed, j.Note = j.Changed || asked[i].Changed, asked[i].Note
		}
	}
}
