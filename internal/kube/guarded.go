// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Reached implements balancer.Cluster.
func (c *Cluster) Reached() []balancer.Reached {
	var all []balancer.Reached
	for _, obj := range c.snap.services.List() {
		s, ok := obj.(*corev1.Service)
		if !ok || s.Spec.Type != corev1.ServiceTypeLoadBalancer && !bound(s) {
			continue
		}
		r := balancer.Reached{Owner: service.Owner(string(s.UID)), Service: key(s.Namespace, s.Name), Addresses: shownBy(s)}
		if text := s.Annotations[service.AdditionalIPs]; text != "" {
			r.Additional = service.AdditionalOf(text)
		}
		for _, p := range s.Spec.Ports {
			if p.NodePort != 0 {
				r.NodePorts = append(r.NodePorts, p.NodePort)
			}
		}
		all = append(all, r)
	}
	return all
}

// Nodes implements balancer.Cluster.
func (c *Cluster) Nodes() []netip.Addr {
	var all []netip.Addr
	for _, obj := range c.snap.nodes.List() {
		if n, ok := obj.(*corev1.Node); ok {
			all = append(all, internalIPs(n)...)
		}
	}
	return all
}

// NodesOf implements balancer.Cluster. It is not only those that host an endpoint: these
// change with every rollout, and a node without one takes no flow.
func (c *Cluster) NodesOf(on lb.LoadBalancerID) ([]netip.Addr, bool) {
	if len(c.places.several) > 0 && c.allPlaced() != nil {
		return nil, false
	}
	var all []netip.Addr
	for i, name := range c.balancing.Settings.SharedPools() {
		family := []lb.Family{lb.IPv4, lb.IPv6}[i]
		set, err := c.snap.members(c.poolFor(nil, on, service.Pool{Name: name, Family: family, Shared: true}))
		if err != nil {
			return nil, false
		}
		for _, a := range set.Addresses {
			all = append(all, a.IP)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all, true
}

// servicesAtNodes maps a node to the Services whose security rules name nodes.
func (c *Cluster) servicesAtNodes(_ context.Context, _ client.Object) []reconcile.Request {
	var requests []reconcile.Request
	if !c.balancing.Guarded {
		return nil
	}
	for _, s := range list[corev1.Service](c.snap.services, servicesBalanced, "") {
		if s.Annotations[service.DisableFloatingIP] != "" {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return requests
}
