// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// NodePort is a node port at load balancers of one type. Azure allows one rule with it.
type NodePort struct {
	Protocol corev1.Protocol
	Port     int32
	Internal bool
}

// Claims are the node ports that Gateways want to forward to. The oldest Gateway of a node port holds it.
type Claims struct {
	gateways map[NodePort][]*gatewayv1.Gateway // the oldest first
	ports    map[types.NamespacedName][]NodePort
}

// Set replaces the node ports of a Gateway. It returns the other Gateways that gained or lost one.
func (c *Claims) Set(gw *gatewayv1.Gateway, ports []NodePort) (changed []types.NamespacedName) {
	if c.ports == nil {
		c.gateways, c.ports = map[NodePort][]*gatewayv1.Gateway{}, map[types.NamespacedName][]NodePort{}
	}
	name := client.ObjectKeyFromObject(gw)
	affected := slices.Concat(c.ports[name], ports)
	before := make([]types.NamespacedName, len(affected))
	for i, p := range affected {
		before[i], _ = c.Holder(p)
	}
	for _, p := range c.ports[name] {
		c.gateways[p] = slices.DeleteFunc(c.gateways[p], func(g *gatewayv1.Gateway) bool { return client.ObjectKeyFromObject(g) == name })
		if len(c.gateways[p]) == 0 {
			delete(c.gateways, p)
		}
	}
	delete(c.ports, name)
	for _, p := range ports {
		at, _ := slices.BinarySearchFunc(c.gateways[p], gw, func(a, b *gatewayv1.Gateway) int { return ComparePrecedence(a, b) })
		c.gateways[p] = slices.Insert(c.gateways[p], at, gw)
		c.ports[name] = append(c.ports[name], p)
	}
	for i, p := range affected {
		holder, _ := c.Holder(p)
		for _, other := range []types.NamespacedName{before[i], holder} {
			if before[i] != holder && other != name && other.Name != "" && !slices.Contains(changed, other) {
				changed = append(changed, other)
			}
		}
	}
	return changed
}

// Remove removes a deleted Gateway. It returns the Gateways that hold its node ports now.
func (c *Claims) Remove(name types.NamespacedName) (changed []types.NamespacedName) {
	if len(c.ports[name]) == 0 {
		return nil
	}
	gw := &gatewayv1.Gateway{}
	gw.Namespace, gw.Name = name.Namespace, name.Name
	return c.Set(gw, nil)
}

// Holder returns the Gateway that holds a node port; false if none claims it.
func (c *Claims) Holder(p NodePort) (types.NamespacedName, bool) {
	if line := c.gateways[p]; len(line) > 0 {
		return client.ObjectKeyFromObject(line[0]), true
	}
	return types.NamespacedName{}, false
}
