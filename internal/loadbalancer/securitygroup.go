// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/loadbalancer/securitygroup"
	"weir.dev/weir/internal/service"
)

func (g *securityGroup) groupRequests(jobs []*job) []*securitygroup.Request {
	requests := make([]*securitygroup.Request, len(jobs))
	for i, j := range jobs {
		g.formerAddresses.AddAddresses(j.Owner, j.Addresses) // if the outcome is unknown
		requests[i] = &securitygroup.Request{Demand: securitygroup.Demand{
			Service: j.Service, Owner: j.Owner, Desired: j.localSpec, Addresses: j.Addresses, Published: j.StatusAddresses,
			Former: g.formerAddresses.AddressesOf(j.Owner), On: j.On, AnyNode: g.usesOwnPool(j), RetryToken: j.RetryToken, ClosesOnly: j.CloseOnly,
		}}
	}
	return requests
}

// usesOwnPool reports whether a rule of the Service has a pool of its own after the last write, for example because the
// pool of all nodes is not filled yet. Only rules without floating IP need the nodes.
func (g *securityGroup) usesOwnPool(j *job) bool {
	if j.localSpec == nil || j.localSpec.NodePorts() == nil {
		return false
	}
	_, rules := g.cache.partsOf(j.Owner)
	return slices.ContainsFunc(rules, func(r lb.Rule) bool {
		return containsFold(j.DedicatedPools, r.Pool) && !containsFold(g.cfg.NodePools(), r.Pool)
	})
}

func recordGroupResults(jobs []*job, requested []*securitygroup.Request) {
	for i, j := range jobs {
		j.addConflicts(requested[i].Conflict)
		if j.rejection = requested[i].Err; j.rejection == nil {
			j.Changed, j.Message = j.Changed || requested[i].Changed, requested[i].Warning
		}
	}
}

func releasedAddresses(changes []lb.Change, ips *publicip.Round) []netip.Addr {
	var addresses []netip.Addr
	for _, c := range changes {
		if old, ok := c.Was.(lb.Frontend); ok {
			addresses = append(addresses, addressOf(old, ips))
		}
	}
	return addresses
}

// addressOf returns the address of a frontend; invalid if its public IP was not read.
func addressOf(f lb.Frontend, ips *publicip.Round) netip.Addr {
	if f.PublicIP == "" {
		return f.PrivateIP
	}
	ip, _ := ips.ByID(f.PublicIP)
	return ip.Address
}

// readExisting reads from Azure the frontends of Services that leave or are closed, unless this process opened the
// group for them. It returns all jobs except leaving ones that could not be read: the group must close before
// anything is removed. If the read fails, a Service is closed at its known addresses and its request fails.
func (g *securityGroup) readExisting(ctx context.Context, jobs []*job) []*job {
	var unknown []*job
	for _, j := range jobs {
		if (j.Desired == nil || j.CloseOnly) && !g.group.HasWritten(j.Owner) {
			unknown = append(unknown, j)
		}
	}
	if len(unknown) == 0 {
		return jobs
	}
	within, cancel := context.WithTimeout(ctx, publicip.Timeout)
	defer cancel()
	err := g.readAll(within)
	ips := g.publicIPManager.BeginRound(within, lb.LoadBalancerID{}, ipRequests(unknown))
	for _, j := range unknown {
		if j.ipRequest.Err == nil {
			j.ipRequest.Err = err
		}
		frontends, rules := g.cache.partsOf(j.Owner)
		addresses := make([]netip.Addr, len(frontends))
		for i, f := range frontends {
			addresses[i] = addressOf(f, ips)
		}
		g.formerAddresses.AddAddresses(j.Owner, append(ips.UnwantedAddresses(j.ipRequest), addresses...))
		if j.CloseOnly {
			j.localSpec, j.Addresses = existingSpec(*j.Desired, frontends, rules, addresses), addresses
		}
	}
	return g.failUnready(ctx, jobs, func(j *job) error {
		if j.CloseOnly {
			return nil
		}
		return j.publicIPError()
	})
}

func existingSpec(w service.Spec, frontends []lb.Frontend, rules []lb.Rule, addresses []netip.Addr) *service.Spec {
	w.Frontends, w.Rules = nil, rules
	for i, f := range frontends {
		f.Family = lb.IPv4
		if lb.IPv6.Contains(addresses[i]) {
			f.Family = lb.IPv6
		}
		w.Frontends = append(w.Frontends, service.Frontend{Frontend: f})
	}
	return &w
}
