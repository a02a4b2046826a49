// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/service"
)

// Machines implements nicupdate.Cluster.
func (c *Controllers) Machines() []nic.Node {
	on := c.configurationOf()
	var nodes []nic.Node
	for _, n := range cache.All[corev1.Node](c.View.Nodes) {
		if machine, err := nic.ParseMachine(n.Spec.ProviderID); err == nil && (len(c.Ownership.Configurations) == 0 || !c.View.IsDuplicate(n, on)) {
			nodes = append(nodes, nic.Node{Machine: machine, Configuration: on(n)})
		}
	}
	slices.SortFunc(nodes, func(a, b nic.Node) int {
		return cmp.Or(cmp.Compare(a.Machine.Key(), b.Machine.Key()), cmp.Compare(a.Configuration, b.Configuration))
	})
	return nodes
}

// configurationOf returns the load balancer configuration of a node: by label, or the single one
// once it has pools of all nodes.
func (c *Controllers) configurationOf() func(*corev1.Node) string {
	if len(c.Ownership.Configurations) > 0 {
		names := cache.PlaceNames(c.Ownership.Configurations)
		return func(n *corev1.Node) string { return names[n.Labels[metadata.PlaceLabel]] }
	}
	only := ""
	for _, id := range c.InterfacePools() {
		if c.Ownership.ManagesLoadBalancer(id.LoadBalancer) {
			only = service.ConfigurationName(id.LoadBalancer.Name, nil)
		}
	}
	return func(*corev1.Node) string { return only }
}

// exclusionReason returns why a node is excluded: Azure allows a network interface in the pools of one
// load balancer only.
func (c *Controllers) exclusionReason(p *v1alpha1.BackendPool) func(*corev1.Node) string {
	if len(c.Ownership.Configurations) == 0 || !c.Ownership.UsesInterfaces(p) {
		return nil
	}
	names, configuration := cache.PlaceNames(c.Ownership.Configurations), service.ConfigurationName(p.Spec.LoadBalancer.Name, c.Ownership.Configurations)
	return func(n *corev1.Node) string {
		if on := names[n.Labels[metadata.PlaceLabel]]; on != "" && on != configuration {
			return "its network interface is in the pools of load balancer " + on
		}
		return ""
	}
}

// places says on which load balancer nodes are, of a pool that takes the nodes of its load balancer alone.
func (c *Controllers) places(p *v1alpha1.BackendPool) func(*corev1.Node) string {
	_, placed := service.ConfigurationOf(p.Spec.LoadBalancer.Name, c.Ownership.Configurations)
	if !placed || !c.Ownership.UsesInterfaces(p) && (p.Spec.Nodes == nil || !c.Ownership.IsCreatedByWeir(p)) {
		return nil
	}
	return c.configurationOf()
}

// InterfacePools implements nicupdate.Cluster.
func (c *Controllers) InterfacePools() []lb.PoolID {
	var pools []lb.PoolID
	for _, p := range cache.All[v1alpha1.BackendPool](c.View.Pools) {
		if !c.Ownership.UsesInterfaces(p) {
			continue
		}
		binding := c.Pools.ResolveBinding(p, time.Now())
		if binding.AllowsUpdates() && !slices.ContainsFunc(pools, func(id lb.PoolID) bool { return id.Key() == binding.Pool.Key() }) {
			pools = append(pools, binding.Pool)
		}
	}
	slices.SortFunc(pools, func(a, b lb.PoolID) int { return cmp.Compare(a.Key(), b.Key()) })
	return pools
}
