// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nsg"
)

// behind are the nodes behind a load balancer or anywhere, if known.
type behind struct {
	nodes []netip.Addr
	known bool
}

type whichNodes struct {
	on       lb.LoadBalancerKey
	anywhere bool
}

// behind returns the nodes of a load balancer, cached because thousands of Services share them.
func (s *survey) behind(g *Group, d Demand) behind {
	key := whichNodes{d.On.Key(), d.Desired.OwnPools()}
	b, done := s.behinds[key]
	if !done {
		b.nodes, b.known = g.cfg.Cluster.NodesOf(d.On, key.anywhere)
		s.behinds[key] = b
	}
	return b
}

// survey is the input of a plan, except for the group.
type survey struct {
	shares []nsg.Share
	// nodes are the current nodes; former are deleted ones that rules may still contain.
	nodes, former []netip.Addr
	// mine are the destinations of known Services, current and former.
	mine    map[netip.Addr]bool
	behinds map[whichNodes]behind
	// naming determines the owners of additional addresses.
	naming naming
	bounds func(namespace string) bound.Settings
	// promised are the claims with reserved capacity.
	promised map[string]nsg.Claim
}

// survey collects the demands of all Services: due ones, and those served since the start. All others, which
// may be of another controller or not reconciled since the start, only keep their places unchanged; so do
// those in stay, which have a conflict.
func (g *Group) survey(due []*Request, stay map[string]bool) survey {
	s := survey{nodes: g.cfg.Cluster.Nodes(), mine: maps.Clone(g.had), behinds: map[whichNodes]behind{}, bounds: g.cfg.Cluster.Bounds, promised: g.room.promises()}
	s.former = without(g.nodes, s.nodes)
	there, isDue := map[string]Reached{}, map[string]bool{}
	for _, r := range g.cfg.Cluster.Reached() {
		there[r.Owner] = r
	}
	for _, r := range due {
		isDue[r.Owner] = true
	}
	s.naming = namingOf(s.nodes, slices.Collect(maps.Values(there)), g.demands(due), g.holds)
	for _, owner := range slices.Sorted(maps.Keys(g.known)) {
		is, ok := there[owner]
		switch known := g.known[owner]; {
		case !ok: // deleted, or its finalizer was removed
			delete(g.known, owner)
		case isDue[owner]:
		case known.Desired == nil:
			// Its rules are removed. Later, another controller may serve it.
			if !sameAddresses(known.Shown, is.Addresses) {
				delete(g.known, owner)
			}
		default:
			s.add(g, owner, known, stay[owner])
		}
	}
	atNodes := map[int32]bool{} // of all fixed shares: one per Service and node would be too many
	for _, owner := range slices.Sorted(maps.Keys(there)) {
		if _, known := g.known[owner]; !known && !isDue[owner] {
			s.shares = append(s.shares, fixedShare(there[owner]))
			for _, port := range there[owner].NodePorts {
				atNodes[port] = true
			}
		}
	}
	if len(atNodes) > 0 {
		s.shares = append(s.shares, nsg.Share{Fixed: true, Places: s.reached(nil, slices.Sorted(maps.Keys(atNodes)))})
	}
	for _, r := range due {
		s.add(g, r.Owner, r.Demand, stay[r.Owner])
	}
	return s
}

// fixedShare returns the share of a Service with an unknown demand.
func fixedShare(r Reached) nsg.Share {
	return nsg.Share{
		Service: r.Owner, Namespace: namespaceOf(r.Service), Fixed: true, Places: []nsg.Place{{Addresses: r.Addresses}}, NodePorts: r.NodePorts,
	}
}

func namespaceOf(service string) string {
	namespace, _, _ := strings.Cut(service, "/")
	return namespace
}

// sameAddresses reports whether both lists have the same addresses and are not empty.
func sameAddresses(a, b []netip.Addr) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, netip.Addr.Compare)
	slices.SortFunc(b, netip.Addr.Compare)
	return len(a) > 0 && slices.Equal(a, b)
}

// add adds the demand of a Service. It is fixed if its nodes are unknown.
func (s *survey) add(g *Group, owner string, of Demand, stays bool) {
	of = s.naming.lawful(of)
	for _, a := range s.places(of) {
		s.mine[a] = true
	}
	if of.Desired == nil {
		return
	}
	if of.Closes {
		s.shares = append(s.shares, s.limitedShare(owner, of, stays))
		return
	}
	at := s.behind(g, of)
	share := nsg.Share{
		Service: owner, Namespace: namespaceOf(of.Service), Fixed: stays, Admissions: of.Desired.Admissions(of.Addresses, at.nodes),
		Places: s.reached(s.places(of), of.Desired.NodePorts()), NodePorts: of.Desired.NodePorts(),
	}
	if !at.known && len(of.Desired.NodePorts()) > 0 {
		share.Fixed = true
	}
	for _, a := range share.Admissions {
		for _, d := range a.Destinations {
			s.mine[d] = true
		}
	}
	s.shares = append(s.shares, share)
}

// limitedShare returns the share of a closing demand.
func (s *survey) limitedShare(owner string, of Demand, stays bool) nsg.Share {
	return nsg.Share{
		Service: owner, Namespace: namespaceOf(of.Service), Fixed: stays, Limit: of.Desired.Limit(of.Addresses, slices.Concat(s.nodes, s.former)),
		Admissions: of.Desired.Denials(of.Addresses, s.nodes), Places: s.reached(s.places(of), of.Desired.NodePorts()), NodePorts: of.Desired.NodePorts(),
	}
}

// places returns all addresses of a Service, including former and additional ones.
func (s *survey) places(of Demand) []netip.Addr {
	all := slices.Concat(of.Addresses, of.Shown, of.Had)
	if of.Desired != nil {
		all = append(all, s.naming.lawful(of).Desired.Access.Additional...)
	}
	return all
}

// reached returns the addresses, and the ports on all nodes.
func (s *survey) reached(addresses []netip.Addr, ports []int32) []nsg.Place {
	places := []nsg.Place{{Addresses: addresses}}
	if len(ports) > 0 {
		places = append(places, nsg.Place{Addresses: slices.Concat(s.nodes, s.former), Ports: ports})
	}
	return places
}

func (s *survey) input(observed []lb.SecurityRule) nsg.Input {
	in := nsg.Input{Observed: observed, Shares: s.shares, Ours: maps.Clone(s.mine), Bounds: s.bounds, Promised: s.promised}
	for _, n := range slices.Concat(s.nodes, s.former) {
		in.Ours[n] = true
	}
	return in
}

// ours returns the destinations of these Services. Closed ones are left out, because another cluster may use
// them later.
func (s *survey) ours(known map[string]Demand) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, of := range known {
		for _, a := range s.places(Demand{Service: of.Service, Desired: of.Desired, Addresses: of.Addresses}) {
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

// sees records the current nodes and retains former ones that rules still contain.
func (g *Group) sees(nodes []netip.Addr, rules []lb.SecurityRule) {
	former := without(g.nodes, nodes)
	named := map[netip.Addr]bool{}
	if len(former) > 0 {
		named = nsg.Hosts(rules)
	}
	g.nodes = map[netip.Addr]bool{}
	for _, n := range nodes {
		g.nodes[n] = true
	}
	for _, n := range former {
		if named[n] {
			g.nodes[n] = true
		}
	}
}

// without returns the set minus the list.
func without(set map[netip.Addr]bool, list []netip.Addr) []netip.Addr {
	rest := maps.Clone(set)
	for _, a := range list {
		delete(rest, a)
	}
	return slices.Collect(maps.Keys(rest))
}
