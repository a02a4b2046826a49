// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nsg"
	"weir.dev/weir/internal/service"
)

// guarded is what a Service wants of the security group.
type guarded struct {
	service string
	desired *service.Spec // nil if it leaves
	// addresses are those of its frontends, and shown those that its status showed.
	addresses, shown []netip.Addr
	on               lb.LoadBalancerID
	again            string
}

func (of guarded) asked() contest.Asked {
	return contest.Asked{Desired: of.desired, On: of.on.Key(), Again: of.again}
}

func guardedBy(j *job) guarded {
	return guarded{service: j.Service, desired: j.Desired, addresses: j.addresses, shown: j.Shown, on: j.On, again: j.Again}
}

// admissions are what a Service asks for.
func (g *guard) admissions(of guarded) []nsg.Admission {
	nodes, _ := g.cfg.Cluster.NodesOf(of.on)
	return of.desired.Admissions(of.addresses, nodes)
}

// behind are the nodes behind a load balancer, if they are known.
type behind struct {
	nodes []netip.Addr
	known bool
}

// behind looks the nodes of a load balancer up, once: thousands of Services have the same.
func (s *situation) behind(g *guard, on lb.LoadBalancerID) behind {
	b, done := s.behinds[on.Key()]
	if !done {
		b.nodes, b.known = g.cfg.Cluster.NodesOf(on)
		s.behinds[on.Key()] = b
	}
	return b
}

// situation is what a plan of the security group is made from, but for the group.
type situation struct {
	shares []nsg.Share
	nodes  []netip.Addr
	// mine are the destinations of the Services of which it is known what they want, and former ones.
	mine    map[netip.Addr]bool
	behinds map[lb.LoadBalancerKey]behind
	// naming says which additional addresses are whose.
	naming naming
}

// survey gathers what all Services of the cluster ask for: those that are due, those that
// were served since the start, and of all others only where they are reached, so that
// nothing is closed there. Those may be of another controller, and after a start they are
// all that were not looked at yet. Those of stay are contested, and nothing is changed where
// they are reached.
func (g *guard) survey(jobs []*job, stay map[string]bool) situation {
	s := situation{nodes: g.cfg.Cluster.Nodes(), mine: maps.Clone(g.had), behinds: map[lb.LoadBalancerKey]behind{}}
	there, due := map[string]Reached{}, map[string]bool{}
	for _, r := range g.cfg.Cluster.Reached() {
		there[r.Owner] = r
	}
	for _, j := range jobs {
		due[j.Owner] = true
	}
	s.naming = namingOf(s.nodes, slices.Collect(maps.Values(there)), g.demands(jobs), g.holds)
	for _, owner := range slices.Sorted(maps.Keys(g.known)) {
		is, ok := there[owner]
		switch known := g.known[owner]; {
		case !ok: // it has gone, or somebody took its finalizer away
			delete(g.known, owner)
		case due[owner]:
		case known.desired == nil:
			// It keeps nothing open while it leaves. Once it has, somebody else may serve it.
			if !sameAddresses(known.shown, is.Addresses) {
				delete(g.known, owner)
			}
		default:
			s.add(g, owner, known, stay[owner])
		}
	}
	atNodes := map[int32]bool{} // of all that are fixed: each at each node would be many
	for _, owner := range slices.Sorted(maps.Keys(there)) {
		if _, known := g.known[owner]; !known && !due[owner] {
			s.shares = append(s.shares, nsg.Share{Service: owner, Fixed: true, Places: s.reached(there[owner].Addresses, nil)})
			for _, port := range there[owner].NodePorts {
				atNodes[port] = true
			}
		}
	}
	if len(atNodes) > 0 {
		s.shares = append(s.shares, nsg.Share{Fixed: true, Places: s.reached(nil, slices.Sorted(maps.Keys(atNodes)))})
	}
	for _, j := range jobs {
		s.add(g, j.Owner, guardedBy(j), stay[j.Owner])
	}
	return s
}

// sameAddresses reports whether two lists hold the same addresses, and any.
func sameAddresses(a, b []netip.Addr) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, netip.Addr.Compare)
	slices.SortFunc(b, netip.Addr.Compare)
	return len(a) > 0 && slices.Equal(a, b)
}

// add adds a Service of which it is known what it wants. One whose nodes are not known is as good as one
// of which nothing is.
func (s *situation) add(g *guard, owner string, of guarded, stays bool) {
	of = s.naming.lawful(of)
	for _, a := range s.places(of) {
		s.mine[a] = true
	}
	if of.desired == nil {
		return
	}
	at := s.behind(g, of.on)
	share := nsg.Share{Service: owner, Fixed: stays, Admissions: of.desired.Admissions(of.addresses, at.nodes), Places: s.reached(s.places(of), of.desired.NodePorts())}
	if !at.known && len(of.desired.NodePorts()) > 0 {
		share.Fixed = true
	}
	for _, a := range share.Admissions {
		for _, d := range a.Destinations {
			s.mine[d] = true
		}
	}
	s.shares = append(s.shares, share)
}

// places are the addresses of a Service, those that it had and those in front included.
func (s *situation) places(of guarded) []netip.Addr {
	all := slices.Concat(of.addresses, of.shown)
	if of.desired != nil {
		all = append(all, s.naming.lawful(of).desired.Access.Additional...)
	}
	return all
}

// reached are some addresses, and some ports of all nodes.
func (s *situation) reached(addresses []netip.Addr, ports []int32) []nsg.Place {
	places := []nsg.Place{{Addresses: addresses}}
	if len(ports) > 0 {
		places = append(places, nsg.Place{Addresses: s.nodes, Ports: ports})
	}
	return places
}

func (s *situation) input(observed []lb.SecurityRule) nsg.Input {
	in := nsg.Input{Observed: observed, Shares: s.shares, Ours: maps.Clone(s.mine)}
	for _, n := range s.nodes {
		in.Ours[n] = true
	}
	return in
}

// ours are the destinations of these Services: what is closed by now may be another
// cluster's the next time.
func (s *situation) ours(known map[string]guarded) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, of := range known {
		for _, a := range s.places(guarded{service: of.service, desired: of.desired, addresses: of.addresses}) {
			all[a] = true
		}
	}
	for _, share := range s.shares {
		for _, a := range share.Admissions {
			for _, d := range a.Destinations {
				all[d] = true
			}
		}
	}
	return all
}
