// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/securitygroup"
)

// guard has the security group admit whom Services say. Its round alone writes the group, and
// holds up no load balancer. It is of one goroutine.
type guard struct{ *Balancers }

// round makes the next step of these jobs.
func (g *guard) round(ctx context.Context, jobs []*job) {
	// In which order load balancers are ready is chance: priorities are not to depend on it.
	slices.SortStableFunc(jobs, func(a, b *job) int { return strings.Compare(a.Service, b.Service) })
	jobs = g.lookUp(ctx, jobs)
	level := g.among(ctx, jobs, func(ctx context.Context, jobs []*job) error {
		demands := g.demands(jobs)
		err := g.group.Write(ctx, demands, logFor(g.cfg.Log, "securityGroup", g.cfg.SecurityGroup.Name, jobs))
		settle(jobs, demands)
		return err
	})
	for _, j := range level {
		j.steps, j.begun = j.steps[1:], true
		g.former.Forget(j.Owner)
		g.next(j)
	}
}

// demands are what the jobs ask of the group.
func (g *guard) demands(jobs []*job) []*securitygroup.Request {
	all := make([]*securitygroup.Request, len(jobs))
	for i, j := range jobs {
		g.former.Note(j.Owner, j.Addresses) // should the outcome stay unknown
		all[i] = &securitygroup.Request{Demand: securitygroup.Demand{
			Service: j.Service, Owner: j.Owner, Desired: j.Desired, Addresses: j.Addresses, Shown: j.Shown,
			Had: g.former.Addresses(j.Owner), On: j.On, Again: j.Again,
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

// taken are the addresses of frontends that change or go.
func taken(changes []plan.Change, ips *publicip.Round) []netip.Addr {
	var all []netip.Addr
	for _, c := range changes {
		if was, ok := c.Was.(lb.Frontend); ok {
			all = append(all, addressOf(was, ips))
		}
	}
	return all
}

// addressOf is the address of a frontend; not valid if its public IP is in no resource group that
// was read.
func addressOf(f lb.Frontend, ips *publicip.Round) netip.Addr {
	if f.PublicIP == "" {
		return f.PrivateIP
	}
	ip, _ := ips.ByID(f.PublicIP)
	return ip.Address
}

// lookUp asks Azure what the Services have that are about to leave, unless this process has opened the
// group for them, and returns all jobs but those for which Azure does not say. Nothing has been taken
// from them yet: the group closes first.
func (g *guard) lookUp(ctx context.Context, jobs []*job) []*job {
	var leave []*job
	for _, j := range jobs {
		if j.Desired == nil && !g.group.Knows(j.Owner) {
			leave = append(leave, j)
		}
	}
	if len(leave) == 0 {
		return jobs
	}
	within, cancel := context.WithTimeout(ctx, publicip.Deadline)
	defer cancel()
	ips := g.ips.Begin(within, lb.LoadBalancerID{}, requests(leave))
	for _, j := range leave {
		if j.ips.Err != nil {
			continue
		}
		g.former.Note(j.Owner, ips.Unwanted(j.ips))
		for _, f := range g.placements.frontends(j.Owner) {
			g.former.Note(j.Owner, []netip.Addr{addressOf(f, ips)})
		}
	}
	return g.sift(ctx, jobs, (*job).unprovided)
}
