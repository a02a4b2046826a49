// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/membership"
)

// hostsOnly is the hostname that marks a stripped slice; it is invalid in the API.
const hostsOnly = "*"

// Values of the stripped endpoint's topology, for nodes without a ready endpoint. Endpoints that start and are not
// ready give the node no traffic.
const (
	drainingHost = "draining"
	startingHost = "starting"
	replacedHost = "replaced" // endpoints there drain, and others start
)

// keepHosts replaces the endpoints of a slice by a single one. Its addresses are the sorted nodes of
// endpoints that take traffic, with an empty string per endpoint without a node; its topology names the nodes without
// a ready one. An Endpoint takes a hundred bytes, and clusters have more endpoints than anything else.
func keepHosts(s *discoveryv1.EndpointSlice) {
	if _, ok := hostsIn(s); ok {
		return // already stripped
	}
	hosts := make([]string, 0, len(s.Endpoints))
	ready, unready := map[string]bool{}, map[string]string(nil)
	for i := range s.Endpoints {
		e := endpointOf(&s.Endpoints[i])
		if e.Node = metadata.Intern(e.Node); e.TakesTraffic() {
			hosts = append(hosts, e.Node)
		}
		if ready[e.Node] = ready[e.Node] || e.Ready; e.Node != "" && !e.Ready {
			unready = addUnready(unready, e)
		}
	}
	for name := range unready {
		if ready[name] {
			delete(unready, name)
		}
	}
	if s.Endpoints = nil; len(hosts)+len(unready) == 0 {
		return
	}
	slices.Sort(hosts)
	kept := make([]string, 0, len(hosts))
	for i, name := range hosts {
		if name == "" || i == 0 || name != hosts[i-1] {
			kept = append(kept, name)
		}
	}
	if len(unready) == 0 {
		unready = nil
	}
	s.Endpoints = []discoveryv1.Endpoint{{Hostname: &only, Addresses: slices.Clip(slices.Clone(kept)), DeprecatedTopology: unready}}
}

// addUnready adds the node of an endpoint that is not ready.
func addUnready(unready map[string]string, e membership.Endpoint) map[string]string {
	state := ""
	switch {
	case e.TakesTraffic():
		state = drainingHost
	case e.IsStarting():
		state = startingHost
	default:
		return unready
	}
	if unready == nil {
		unready = map[string]string{}
	}
	if old := unready[e.Node]; old != "" && old != state {
		state = replacedHost
	}
	unready[e.Node] = state
	return unready
}

var only = hostsOnly

// hostsIn returns the nodes stored by keepHosts; false for a slice that is not stripped.
func hostsIn(s *discoveryv1.EndpointSlice) (hosts []string, kept bool) {
	if len(s.Endpoints) != 1 || s.Endpoints[0].Hostname == nil || *s.Endpoints[0].Hostname != hostsOnly {
		return nil, false
	}
	return s.Endpoints[0].Addresses, true
}

func endpointsOf(s *discoveryv1.EndpointSlice) []membership.Endpoint {
	hosts, kept := hostsIn(s)
	if !kept {
		endpoints := make([]membership.Endpoint, len(s.Endpoints))
		for i := range s.Endpoints {
			endpoints[i] = endpointOf(&s.Endpoints[i])
		}
		return endpoints
	}
	unready := s.Endpoints[0].DeprecatedTopology
	items := make([]membership.Endpoint, 0, len(hosts)+len(unready))
	for _, name := range hosts {
		_, drains := unready[name]
		items = append(items, membership.Endpoint{Node: name, Ready: !drains, Serving: true, Terminating: drains})
	}
	for name, state := range unready {
		if state != drainingHost {
			items = append(items, membership.Endpoint{Node: name})
		}
	}
	return items
}

// endpointOf converts an endpoint. Unset conditions mean: ready true, serving as ready, terminating false.
func endpointOf(e *discoveryv1.Endpoint) membership.Endpoint {
	ready := ptr.Deref(e.Conditions.Ready, true)
	return membership.Endpoint{
		Node:        ptr.Deref(e.NodeName, ""),
		Ready:       ready,
		Serving:     ptr.Deref(e.Conditions.Serving, ready),
		Terminating: ptr.Deref(e.Conditions.Terminating, false),
	}
}

// TakesTraffic reports whether any endpoint of a slice takes traffic.
func TakesTraffic(s *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(endpointsOf(s), membership.Endpoint.TakesTraffic)
}

// HasEndpoints reports whether any endpoint of a Service takes traffic.
func (s *Snapshot) HasEndpoints(service string) bool {
	return slices.ContainsFunc(List[discoveryv1.EndpointSlice](s.Slices, SlicesByService, service), TakesTraffic)
}

// hasHost reports whether an endpoint of a slice takes traffic on a node.
func hasHost(s *discoveryv1.EndpointSlice, node string) bool {
	if hosts, kept := hostsIn(s); kept {
		_, ok := slices.BinarySearch(hosts, node)
		return ok
	}
	return slices.ContainsFunc(endpointsOf(s), func(e membership.Endpoint) bool { return e.Node == node && e.TakesTraffic() })
}

// nodesWithEndpoints is NodesOf including nodes on which endpoints only start.
func nodesWithEndpoints(s *discoveryv1.EndpointSlice) []string {
	names := NodesOf(s)
	if _, kept := hostsIn(s); !kept {
		return names
	}
	for name, state := range s.Endpoints[0].DeprecatedTopology {
		if state == startingHost {
			names = append(names, name)
		}
	}
	return names
}

// NodesOf returns the nodes of a slice's endpoints without duplicates.
func NodesOf(s *discoveryv1.EndpointSlice) []string {
	var names []string
	if hosts, kept := hostsIn(s); kept {
		names = slices.Clone(hosts)
	} else {
		for _, e := range s.Endpoints {
			names = append(names, ptr.Deref(e.NodeName, ""))
		}
		slices.Sort(names)
	}
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// SameMembers reports whether two versions of a slice give the same members. It may return false for slices
// that are not stripped and differ in order.
func SameMembers(before, after *discoveryv1.EndpointSlice) bool {
	if before.AddressType != after.AddressType {
		return false
	}
	oldHosts, kept1 := hostsIn(before)
	hosts, kept2 := hostsIn(after)
	if kept1 || kept2 {
		return slices.Equal(oldHosts, hosts) && maps.Equal(unreadyIn(before), unreadyIn(after))
	}
	return slices.EqualFunc(before.Endpoints, after.Endpoints, func(x, y discoveryv1.Endpoint) bool {
		a, b := endpointOf(&x), endpointOf(&y)
		return a.TakesTraffic() == b.TakesTraffic() && a.IsStarting() == b.IsStarting() && a.Node == b.Node
	})
}

// unreadyIn returns the topology stored by keepHosts.
func unreadyIn(s *discoveryv1.EndpointSlice) map[string]string {
	if _, kept := hostsIn(s); !kept {
		return nil
	}
	return s.Endpoints[0].DeprecatedTopology
}
