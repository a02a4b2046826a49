// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/service"
)

// Machines implements nicupdate.Cluster.
func (r *Rooms) Machines() []nic.Node {
	on := r.configurationOf()
	var all []nic.Node
	for _, n := range view.All[corev1.Node](r.View.Nodes) {
		if machine, err := nic.ParseMachine(n.Spec.ProviderID); err == nil && (len(r.Own.Several) == 0 || !r.View.IsDuplicate(n, on)) {
			all = append(all, nic.Node{Machine: machine, Configuration: on(n)})
		}
	}
	slices.SortFunc(all, func(a, b nic.Node) int {
		return cmp.Or(cmp.Compare(a.Machine.Key(), b.Machine.Key()), cmp.Compare(a.Configuration, b.Configuration))
	})
	return all
}

// configurationOf returns the load balancer configuration of a node: by label, or the single one
// once it has pools of all nodes.
func (r *Rooms) configurationOf() func(*corev1.Node) string {
	if len(r.Own.Several) > 0 {
		names := view.PlaceNames(r.Own.Several)
		return func(n *corev1.Node) string { return names[n.Labels[view.PlaceLabel]] }
	}
	only := ""
	for _, id := range r.InterfacePools() {
		if r.Own.Owns(id.LoadBalancer) {
			only = service.ConfigurationName(id.LoadBalancer.Name, nil)
		}
	}
	return func(*corev1.Node) string { return only }
}

// elsewhere returns why a node is excluded: Azure allows a network interface in the pools of one
// load balancer only.
func (r *Rooms) elsewhere(p *v1alpha1.BackendPool) func(*corev1.Node) string {
	if len(r.Own.Several) == 0 || !r.Own.ByMachine(p) {
		return nil
	}
	names, here := view.PlaceNames(r.Own.Several), service.ConfigurationName(p.Spec.LoadBalancer.Name, r.Own.Several)
	return func(n *corev1.Node) string {
		if on := names[n.Labels[view.PlaceLabel]]; on != "" && on != here {
			return "its network interface is in the pools of load balancer " + on
		}
		return ""
	}
}

// places says on which load balancer nodes are, of a pool that takes the nodes of its load balancer alone.
func (r *Rooms) places(p *v1alpha1.BackendPool) func(*corev1.Node) string {
	_, placed := service.ConfigurationOf(p.Spec.LoadBalancer.Name, r.Own.Several)
	if !placed || !r.Own.ByMachine(p) && (p.Spec.Nodes == nil || !r.Own.Made(p)) {
		return nil
	}
	return r.configurationOf()
}

// InterfacePools implements nicupdate.Cluster.
func (r *Rooms) InterfacePools() []lb.PoolID {
	var all []lb.PoolID
	for _, p := range view.All[v1alpha1.BackendPool](r.View.Pools) {
		if !r.Own.ByMachine(p) {
			continue
		}
		is := r.Pools.Entitlement(p, time.Now())
		if is.Works() && !slices.ContainsFunc(all, func(id lb.PoolID) bool { return id.Key() == is.Pool.Key() }) {
			all = append(all, is.Pool)
		}
	}
	slices.SortFunc(all, func(a, b lb.PoolID) int { return cmp.Compare(a.Key(), b.Key()) })
	return all
}
