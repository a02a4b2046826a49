// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// This file decides what kube-proxy does with packets that reach a node.

// ClusterState is what the API server holds. It is not changed after it is applied.
type ClusterState struct {
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	Nodes    []*corev1.Node
	Pods     []*corev1.Pod
}

// healthzPort is where kube-proxy answers for itself.
const healthzPort = 10256

// deletedByAutoscaler is the taint by which kube-proxy's healthz fails (KEP-3836).
const deletedByAutoscaler = "ToBeDeletedByClusterAutoscaler"

// endpoint is a pod behind a port of a Service.
type endpoint struct {
	at                          netip.AddrPort
	node                        string
	ready, serving, terminating bool
}

// nodePort is what a node does at a destination: forward to one of the endpoints, or answer a health check.
type nodePort struct {
	endpoints []endpoint
	health    *nodeHealth
}

// nodeHealth is the answer to a health check.
type nodeHealth struct {
	healthy bool
	// localEndpoints is for healthCheckNodePorts only.
	localEndpoints int
}

// servingEndpoints are those that packets for a Service go to: the ready ones, or if none is, those that terminate and
// still serve (KEP-1669). With the policy Local, only the node's own count.
func servingEndpoints(endpoints []endpoint, local bool, node string) []endpoint {
	var ready, leaving []endpoint
	for _, e := range endpoints {
		switch {
		case local && e.node != node:
		case e.ready:
			ready = append(ready, e)
		case e.serving && e.terminating:
			leaving = append(leaving, e)
		}
	}
	if len(ready) > 0 {
		return ready
	}
	return leaving
}

// planNode returns what a node does at each destination.
func planNode(state *ClusterState, node *corev1.Node) map[Destination]nodePort {
	plan := map[Destination]nodePort{}
	for _, ip := range nodeAddresses(node) {
		plan[DestinationOf(TCP, netip.AddrPortFrom(ip, healthzPort))] = nodePort{health: &nodeHealth{healthy: isEligible(node)}}
		for _, s := range state.Services {
			if s.Spec.Type == corev1.ServiceTypeLoadBalancer || s.Spec.Type == corev1.ServiceTypeNodePort {
				planService(plan, state, s, node.Name, ip)
			}
		}
	}
	return plan
}

// isEligible reports whether kube-proxy's healthz wants new flows for the node (KEP-3836).
func isEligible(node *corev1.Node) bool {
	return node.DeletionTimestamp == nil &&
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == deletedByAutoscaler })
}

func planService(plan map[Destination]nodePort, state *ClusterState, s *corev1.Service, node string, ip netip.Addr) {
	local := s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	for _, port := range s.Spec.Ports {
		protocol, ok := protocolOf(port.Protocol)
		if !ok {
			continue
		}
		to := nodePort{endpoints: servingEndpoints(endpointsOf(state, s, port.Name, ip.Is4()), local, node)}
		if port.NodePort != 0 {
			plan[DestinationOf(protocol, addrPort(ip, port.NodePort))] = to
		}
		for _, in := range s.Status.LoadBalancer.Ingress {
			if front, err := netip.ParseAddr(in.IP); err == nil && front.Is4() == ip.Is4() {
				plan[Destination{protocol, ip, addrPort(front, port.Port)}] = to
			}
		}
	}
	if s.Spec.HealthCheckNodePort != 0 {
		n := readyOn(state, s, node, ip.Is4())
		plan[DestinationOf(TCP, addrPort(ip, s.Spec.HealthCheckNodePort))] = nodePort{health: &nodeHealth{n > 0, n}}
	}
}

// readyOn counts the ready endpoints on a node. Those that terminate are not ready, although they may serve.
func readyOn(state *ClusterState, s *corev1.Service, node string, is4 bool) int {
	found := map[netip.Addr]bool{}
	for _, port := range s.Spec.Ports {
		for _, e := range endpointsOf(state, s, port.Name, is4) {
			if e.ready && e.node == node {
				found[e.at.Addr()] = true
			}
		}
	}
	return len(found)
}

func endpointsOf(state *ClusterState, s *corev1.Service, port string, is4 bool) []endpoint {
	var endpoints []endpoint
	for _, slice := range state.Slices {
		if slice.Namespace != s.Namespace || slice.Labels[discoveryv1.LabelServiceName] != s.Name {
			continue
		}
		for _, p := range slice.Ports {
			if p.Port == nil || deref(p.Name, "") != port {
				continue
			}
			for _, e := range slice.Endpoints {
				if ip, err := netip.ParseAddr(firstAddress(e)); err == nil && ip.Is4() == is4 {
					c := e.Conditions
					ready := deref(c.Ready, true)
					endpoints = append(endpoints, endpoint{addrPort(ip, *p.Port), deref(e.NodeName, ""), ready, deref(c.Serving, ready), deref(c.Terminating, false)})
				}
			}
		}
	}
	return endpoints
}

func firstAddress(e discoveryv1.Endpoint) string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return e.Addresses[0]
}

func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func nodeAddresses(node *corev1.Node) []netip.Addr {
	var addresses []netip.Addr
	for _, a := range node.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			addresses = append(addresses, ip)
		}
	}
	return addresses
}

func protocolOf(p corev1.Protocol) (Protocol, bool) {
	switch p {
	case corev1.ProtocolTCP, "":
		return TCP, true
	case corev1.ProtocolUDP:
		return UDP, true
	case corev1.ProtocolSCTP:
	}
	return "", false
}

func addrPort(ip netip.Addr, port int32) netip.AddrPort {
	return netip.AddrPortFrom(ip, uint16(port)) //nolint:gosec // checked by the API server
}

// podPorts returns the ports that a pod listens on: those of its containers, and the numeric target ports of Services
// that select it.
func podPorts(state *ClusterState, pod *corev1.Pod) []PodPort {
	var ports []PodPort
	add := func(p corev1.Protocol, port int32) {
		if protocol, ok := protocolOf(p); ok && port != 0 && !slices.Contains(ports, PodPort{protocol, uint16(port)}) { //nolint:gosec // checked by the API server
			ports = append(ports, PodPort{protocol, uint16(port)}) //nolint:gosec // checked by the API server
		}
	}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			add(p.Protocol, p.ContainerPort)
		}
	}
	for _, s := range state.Services {
		if s.Namespace != pod.Namespace || len(s.Spec.Selector) == 0 || !selects(s.Spec.Selector, pod.Labels) {
			continue
		}
		for _, p := range s.Spec.Ports {
			add(p.Protocol, p.TargetPort.IntVal)
		}
	}
	return ports
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}
