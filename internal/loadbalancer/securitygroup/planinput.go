// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// backendNodes are the nodes behind a load balancer or anywhere, if known.
type backendNodes struct {
	nodes []netip.Addr
	known bool
}

type nodeSetKey struct {
	on       lb.LoadBalancerKey
	anywhere bool
}

// backendNodesOf returns the nodes of a load balancer, cached because thousands of Services share them.
func (p *planInput) backendNodesOf(g *Group, d Demand) backendNodes {
	key := nodeSetKey{d.On.Key(), d.needsAnyNode()}
	b, done := p.nodeCache[key]
	if !done {
		b.nodes, b.known = g.cfg.Cluster.NodesOf(d.On, key.anywhere)
		p.nodeCache[key] = b
	}
	return b
}

// planInput is the input of a plan, except for the group.
type planInput struct {
	shares []service.SecurityShare
	// nodes are the current nodes; former are deleted ones that rules may still contain.
	nodes, formerNodes []netip.Addr
	// destinations are the destinations of known Services, current and former.
	destinations map[netip.Addr]bool
	nodeCache    map[nodeSetKey]backendNodes
	// owners determines the owners of additional addresses.
	owners addressOwners
	limits func(namespace string) service.NamespaceSettings
	// claims are the claims with reserved capacity.
	claims map[string]service.SecurityClaim
}

// collectInput collects the demands of all Services: due ones, and those served since the start. All others, which
// may be of another controller or not reconciled since the start, only keep their places unchanged; so do
// those in stay, which have a conflict.
func (g *Group) collectInput(due []*Request, stay map[string]bool) planInput {
	s := planInput{nodes: g.cfg.Cluster.NodeAddresses(), destinations: maps.Clone(g.previousHosts), nodeCache: map[nodeSetKey]backendNodes{}, limits: g.cfg.Cluster.NamespaceBounds, claims: g.usage.copyClaims()}
	s.formerNodes = subtractAddresses(g.nodes, s.nodes)
	exposed, isDue := map[string]ExposedService{}, map[string]bool{}
	for _, r := range g.cfg.Cluster.ExposedServices() {
		exposed[r.Owner] = r
	}
	for _, r := range due {
		isDue[r.Owner] = true
	}
	s.owners = newAddressOwners(s.nodes, slices.Collect(maps.Values(exposed)), g.knownDemands(due), g.firstNamed)
	for _, owner := range slices.Sorted(maps.Keys(g.known)) {
		svc, ok := exposed[owner]
		switch known := g.known[owner]; {
		case !ok: // deleted, or its finalizer was removed
			delete(g.known, owner)
		case isDue[owner]:
		case known.Desired == nil:
			// Its rules are removed. Later, another controller may serve it.
			if !sameAddresses(known.Published, svc.Addresses) {
				delete(g.known, owner)
			}
		default:
			s.addDemand(g, owner, known, stay[owner])
		}
	}
	atNodes := map[int32]bool{} // of all fixed shares: one per Service and node would be too many
	for _, owner := range slices.Sorted(maps.Keys(exposed)) {
		if _, known := g.known[owner]; !known && !isDue[owner] {
			s.shares = append(s.shares, fixedShare(exposed[owner]))
			for _, port := range exposed[owner].NodePorts {
				atNodes[port] = true
			}
		}
	}
	if len(atNodes) > 0 {
		s.shares = append(s.shares, service.SecurityShare{Fixed: true, Places: s.newPlaces(nil, slices.Sorted(maps.Keys(atNodes)))})
	}
	for _, r := range due {
		s.addDemand(g, r.Owner, r.Demand, stay[r.Owner])
	}
	return s
}

// fixedShare returns the share of a Service with an unknown demand.
func fixedShare(r ExposedService) service.SecurityShare {
	return service.SecurityShare{
		Service: r.Owner, Namespace: namespaceOf(r.Service), Fixed: true, Places: []service.SecurityPlace{{Addresses: r.Addresses}}, NodePorts: r.NodePorts,
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

// addDemand adds the demand of a Service. It is fixed if its nodes are unknown.
func (p *planInput) addDemand(g *Group, owner string, of Demand, isContested bool) {
	of = p.owners.filterDemand(of)
	for _, a := range p.allAddresses(of) {
		p.destinations[a] = true
	}
	if of.Desired == nil {
		return
	}
	if of.ClosesOnly {
		p.shares = append(p.shares, p.limitedShare(owner, of, isContested))
		return
	}
	at := p.backendNodesOf(g, of)
	share := service.SecurityShare{
		Service: owner, Namespace: namespaceOf(of.Service), Fixed: isContested, AccessRules: of.Desired.AccessRules(of.Addresses, at.nodes),
		Retained: of.Desired.RetainedRules(at.nodes),
		Places:   p.newPlaces(p.allAddresses(of), of.Desired.NodePorts()), NodePorts: of.Desired.NodePorts(),
	}
	if !at.known && len(of.Desired.NodePorts()) > 0 {
		share.Fixed = true
	}
	for _, a := range share.AccessRules {
		for _, d := range a.Destinations {
			p.destinations[d] = true
		}
	}
	p.shares = append(p.shares, share)
}

// limitedShare returns the share of a closing demand.
func (p *planInput) limitedShare(owner string, of Demand, isContested bool) service.SecurityShare {
	return service.SecurityShare{
		Service: owner, Namespace: namespaceOf(of.Service), Fixed: isContested, Limit: of.Desired.ClientLimit(of.Addresses, slices.Concat(p.nodes, p.formerNodes)),
		AccessRules: of.Desired.DenyRules(of.Addresses, p.nodes), Places: p.newPlaces(p.allAddresses(of), of.Desired.NodePorts()), NodePorts: of.Desired.NodePorts(),
	}
}

// allAddresses returns all addresses of a Service, including former and additional ones.
func (p *planInput) allAddresses(of Demand) []netip.Addr {
	addresses := slices.Concat(of.Addresses, of.Published, of.Former)
	if of.Desired != nil {
		addresses = append(addresses, p.owners.filterDemand(of).Desired.Access.Additional...)
	}
	return addresses
}

// newPlaces returns the addresses, and the ports on all nodes.
func (p *planInput) newPlaces(addresses []netip.Addr, ports []int32) []service.SecurityPlace {
	places := []service.SecurityPlace{{Addresses: addresses}}
	if len(ports) > 0 {
		places = append(places, service.SecurityPlace{Addresses: slices.Concat(p.nodes, p.formerNodes), Ports: ports})
	}
	return places
}

func (p *planInput) mergeInput(observed []lb.SecurityRule) service.SecurityInput {
	in := service.SecurityInput{Observed: observed, Shares: p.shares, Managed: maps.Clone(p.destinations), Limits: p.limits, Claims: p.claims}
	for _, n := range slices.Concat(p.nodes, p.formerNodes) {
		in.Managed[n] = true
	}
	return in
}

// activeDestinations returns the destinations of these Services. Closed ones are left out, because another cluster may use
// them later.
func (p *planInput) activeDestinations(known map[string]Demand) map[netip.Addr]bool {
	addresses := map[netip.Addr]bool{}
	for _, of := range known {
		for _, a := range p.allAddresses(Demand{Service: of.Service, Desired: of.Desired, Addresses: of.Addresses}) {
			addresses[a] = true
		}
	}
	for _, share := range p.shares {
		for _, a := range share.AccessRules {
			for _, d := range a.Destinations {
				addresses[d] = true
			}
		}
	}
	return addresses
}

// recordNodes records the current nodes and retains former ones that rules still contain.
func (g *Group) recordNodes(nodes []netip.Addr, rules []lb.SecurityRule) {
	former := subtractAddresses(g.nodes, nodes)
	named := map[netip.Addr]bool{}
	if len(former) > 0 {
		named = service.ManagedSecurityHosts(rules)
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

// subtractAddresses returns the set minus the list.
func subtractAddresses(set map[netip.Addr]bool, list []netip.Addr) []netip.Addr {
	rest := maps.Clone(set)
	for _, a := range list {
		delete(rest, a)
	}
	return slices.Collect(maps.Keys(rest))
}
