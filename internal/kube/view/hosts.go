// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/once"
)

// hostsOnly is the hostname of the one endpoint of a slice as it is cached; no API server takes it.
const hostsOnly = "*"

// keepHosts has a slice hold no more than the nodes that host endpoints which take traffic, in the
// addresses of one endpoint: sorted, each once, and empty for each such endpoint that names no node. An
// Endpoint takes a hundred bytes, and a cluster has more of them than of anything else.
func keepHosts(s *discoveryv1.EndpointSlice) {
	if _, is := hostsIn(s); is {
		return // it was seen before
	}
	hosts := make([]string, 0, len(s.Endpoints))
	for i := range s.Endpoints {
		if e := endpointOf(&s.Endpoints[i]); e.Takes() {
			hosts = append(hosts, once.Text(e.Node))
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

// hostsIn returns what keepHosts has kept; false for a slice as the API server has it.
func hostsIn(s *discoveryv1.EndpointSlice) (hosts []string, kept bool) {
	if len(s.Endpoints) != 1 || s.Endpoints[0].Hostname == nil || *s.Endpoints[0].Hostname != hostsOnly {
		return nil, false
	}
	return s.Endpoints[0].Addresses, true
}

// endpointsOf converts the endpoints of a slice.
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

// endpointOf converts an endpoint. The API leaves conditions unset: ready then means yes, serving as
// ready, terminating no.
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
	return slices.ContainsFunc(endpointsOf(s), membership.Endpoint.Takes)
}

// HasEndpoints reports whether anything takes the traffic of a Service.
func (s *Snapshot) HasEndpoints(service string) bool {
	return slices.ContainsFunc(List[discoveryv1.EndpointSlice](s.Slices, SlicesByService, service), TakesTraffic)
}

// NodesOf returns the nodes that host an endpoint of a slice, each once.
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

// SameMembers reports whether two versions of a slice make the same nodes members. Of one that was not
// cached, and whose endpoints come in another order, it says that they do not.
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
		return a.Takes() == b.Takes() && a.Node == b.Node
	})
}
