// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/once"
)

// hostsOnly is the hostname that marks a stripped slice; it is invalid in the API.
const hostsOnly = "*"

// keepHosts replaces the endpoints of a slice by a single one. Its addresses are the sorted nodes of
// endpoints that take traffic, with an empty string per endpoint without a node. An Endpoint takes a hundred
// bytes, and clusters have more endpoints than anything else.
func keepHosts(s *discoveryv1.EndpointSlice) {
	if _, is := hostsIn(s); is {
		return // already stripped
	}
	hosts := make([]string, 0, len(s.Endpoints))
	for i := range s.Endpoints {
		if e := endpointOf(&s.Endpoints[i]); e.TakesTraffic() {
			hosts = append(hosts, once.InternString(e.Node))
		}
	}
	if s.Endpoints = nil; len(hosts) == 0 {
		return
	}
	slices.Sort(hosts)
	kept := hosts[:1]
	for _, name := range hosts[1:] {
		if name == "" || name != kept[len(kept)-1] {
			kept = append(kept, name)
		}
	}
	s.Endpoints = []discoveryv1.Endpoint{{Hostname: &only, Addresses: slices.Clip(slices.Clone(kept))}}
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
		all := make([]membership.Endpoint, len(s.Endpoints))
		for i := range s.Endpoints {
			all[i] = endpointOf(&s.Endpoints[i])
		}
		return all
	}
	all := make([]membership.Endpoint, len(hosts))
	for i, name := range hosts {
		all[i] = membership.Endpoint{Node: name, Ready: true, Serving: true}
	}
	return all
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
	was, kept1 := hostsIn(before)
	is, kept2 := hostsIn(after)
	if kept1 || kept2 {
		return slices.Equal(was, is)
	}
	return slices.EqualFunc(before.Endpoints, after.Endpoints, func(x, y discoveryv1.Endpoint) bool {
		a, b := endpointOf(&x), endpointOf(&y)
		return a.TakesTraffic() == b.TakesTraffic() && a.Node == b.Node
	})
}
