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
	"weir.dev/weir/internal/service"
)

// guard writes the security group. Its round is the only writer and does not block load balancers. Not safe for
// concurrent use.
type guard struct{ *Balancers }

func (g *guard) round(ctx context.Context, jobs []*job) {
	// Sort: priorities must not depend on the order in which load balancers finish.
	slices.SortStableFunc(jobs, func(a, b *job) int { return strings.Compare(a.Service, b.Service) })
	jobs = g.lookUp(ctx, jobs)
	inSync := g.among(ctx, jobs, func(ctx context.Context, jobs []*job) error {
		demands := g.demands(jobs)
		err := g.group.Write(ctx, demands, logFor(g.cfg.Log, "securityGroup", g.cfg.SecurityGroup.Name, jobs))
		settle(jobs, demands)
		return err
	})
	for _, j := range g.sift(ctx, inSync, (*job).unprovided) {
		j.steps, j.begun = j.steps[1:], true
		if !j.Closes { // otherwise clients are still admitted at these addresses
			g.former.Forget(j.Owner)
		}
		g.next(j)
	}
}

func (g *guard) demands(jobs []*job) []*securitygroup.Request {
	all := make([]*securitygroup.Request, len(jobs))
	for i, j := range jobs {
		g.former.Note(j.Owner, j.Addresses) // if the outcome is unknown
		all[i] = &securitygroup.Request{Demand: securitygroup.Demand{
			Service: j.Service, Owner: j.Owner, Desired: j.wanted, Addresses: j.Addresses, Shown: j.Shown,
			Had: g.former.Addresses(j.Owner), On: j.On, Again: j.Again, Closes: j.Closes,
		}}
	}
	return all
}

func settle(jobs []*job, asked []*securitygroup.Request) {
	for i, j := range jobs {
		j.contested(asked[i].Contest)
		if j.refused = asked[i].Err; j.refused == nil {
			j.Changed, j.Note = j.Changed || asked[i].Changed, asked[i].Note
		}
	}
}

func taken(changes []plan.Change, ips *publicip.Round) []netip.Addr {
	var all []netip.Addr
	for _, c := range changes {
		if was, ok := c.Was.(lb.Frontend); ok {
			all = append(all, addressOf(was, ips))
		}
	}
	return all
}

// addressOf returns the address of a frontend; invalid if its public IP was not read.
func addressOf(f lb.Frontend, ips *publicip.Round) netip.Addr {
	if f.PublicIP == "" {
		return f.PrivateIP
	}
	ip, _ := ips.ByID(f.PublicIP)
	return ip.Address
}

// lookUp reads from Azure the frontends of Services that leave or are closed, unless this process opened the
// group for them. It returns all jobs except leaving ones that could not be read: the group must close before
// anything is removed. If the read fails, a Service is closed at its known addresses and its request fails.
func (g *guard) lookUp(ctx context.Context, jobs []*job) []*job {
	var unknown []*job
	for _, j := range jobs {
		if (j.Desired == nil || j.Closes) && !g.group.Knows(j.Owner) {
			unknown = append(unknown, j)
		}
	}
	if len(unknown) == 0 {
		return jobs
	}
	within, cancel := context.WithTimeout(ctx, publicip.Deadline)
	defer cancel()
	err := g.readAll(within)
	ips := g.ips.Begin(within, lb.LoadBalancerID{}, requests(unknown))
	for _, j := range unknown {
		if j.ips.Err == nil {
			j.ips.Err = err
		}
		frontends, rules := g.placements.partsOf(j.Owner)
		addresses := make([]netip.Addr, len(frontends))
		for i, f := range frontends {
			addresses[i] = addressOf(f, ips)
		}
		g.former.Note(j.Owner, append(ips.Unwanted(j.ips), addresses...))
		if j.Closes {
			j.wanted, j.Addresses = existingSpec(*j.Desired, frontends, rules, addresses), addresses
		}
	}
	return g.sift(ctx, jobs, func(j *job) error {
		if j.Closes {
			return nil
		}
		return j.unprovided()
	})
}

func existingSpec(w service.Spec, frontends []lb.Frontend, rules []lb.Rule, addresses []netip.Addr) *service.Spec {
	w.Frontends, w.Rules = nil, rules
	for i, f := range frontends {
		f.Family = lb.IPv4
		if lb.IPv6.Of(addresses[i]) {
			f.Family = lb.IPv6
		}
		w.Frontends = append(w.Frontends, service.Frontend{Frontend: f})
	}
	return &w
}
