// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// SliceOf converts a slice.
func SliceOf(s *discoveryv1.EndpointSlice) membership.Slice {
	out := membership.Slice{Endpoints: endpointsOf(s)}
	switch s.AddressType {
	case discoveryv1.AddressTypeIPv4:
		out.Family = lb.IPv4
	case discoveryv1.AddressTypeIPv6:
		out.Family = lb.IPv6
	}
	return out
}

// ServiceOfSlice returns the Service of a slice; an empty name if none.
func ServiceOfSlice(s *discoveryv1.EndpointSlice) schedule.ServiceName {
	return schedule.ServiceName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
}

// nodeOf converts a node, without taints and machine.
func nodeOf(n *corev1.Node, controlPlaneToo bool) membership.Node {
	return membership.Node{
		Name: n.Name, UID: string(n.UID), IPs: InternalIPs(n), Place: n.Labels[metadata.PlaceLabel], Excluded: membership.Excluded(n.Labels, controlPlaneToo),
	}
}

// InternalIPs returns the InternalIP addresses of a node in order. It skips addresses that are not global
// unicast or have a zone: a load balancer cannot reach them, and Azure rejects a pool that contains one.
func InternalIPs(n *corev1.Node) []netip.Addr {
	var ips []netip.Addr
	for _, a := range n.Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		if ip, err := netip.ParseAddr(a.Address); err == nil && ip.Zone() == "" && ip.IsGlobalUnicast() {
			ips = append(ips, ip)
		}
	}
	return ips
}

// Placement resolves the pool of a BackendPool.
type Placement struct {
	SubscriptionID, ResourceGroup string
}

// PoolOf returns the pool of a BackendPool. A pool that was taken remains, even if the default resource group
// changes: its addresses are in that pool.
func (pl Placement) PoolOf(p *v1alpha1.BackendPool) (lb.PoolID, error) {
	where := p.Spec.LoadBalancer
	id := lb.PoolID{Name: p.Spec.PoolName, LoadBalancer: lb.LoadBalancerID{
		SubscriptionID: cmp.Or(where.SubscriptionID, pl.SubscriptionID),
		ResourceGroup:  cmp.Or(where.ResourceGroup, pl.ResourceGroup),
		Name:           where.Name,
	}}
	if recorded, ok := parsePoolID(p.Status.PoolID); ok && isTargetOf(recorded, p.Spec) {
		return recorded, nil // a parsed ID is valid
	}
	return id, id.Validate()
}

// isTargetOf reports whether the spec, apart from fields left open, refers to the pool.
func isTargetOf(id lb.PoolID, spec v1alpha1.BackendPoolSpec) bool {
	equal := strings.EqualFold
	open := func(named, value string) bool { return named == "" || equal(named, value) }
	return equal(spec.PoolName, id.Name) && equal(spec.LoadBalancer.Name, id.LoadBalancer.Name) &&
		open(spec.LoadBalancer.ResourceGroup, id.LoadBalancer.ResourceGroup) &&
		open(spec.LoadBalancer.SubscriptionID, id.LoadBalancer.SubscriptionID)
}

// parsePoolID parses the ARM ID of a backend address pool, as formatted by lb.PoolID.
func parsePoolID(s string) (lb.PoolID, bool) {
	part := strings.Split(s, "/")
	if len(part) != 11 {
		return lb.PoolID{}, false
	}
	id := lb.PoolID{Name: part[10], LoadBalancer: lb.LoadBalancerID{SubscriptionID: part[2], ResourceGroup: part[4], Name: part[8]}}
	return id, strings.EqualFold(id.String(), s) && id.Validate() == nil
}

// StateOf converts what decides whether a node is leaving.
func StateOf(n *corev1.Node) lb.NodeState {
	state := lb.NodeState{
		Taints: make([]lb.NodeTaint, len(n.Spec.Taints)), Conditions: make([]lb.NodeCondition, len(n.Status.Conditions)),
		Deleting: n.DeletionTimestamp != nil,
	}
	for i, t := range n.Spec.Taints {
		state.Taints[i] = taintOf(t)
	}
	for i, c := range n.Status.Conditions {
		state.Conditions[i] = ConditionOf(c)
	}
	return state
}

func taintOf(t corev1.Taint) lb.NodeTaint { return lb.NodeTaint{Key: t.Key, Value: t.Value} }

// ConditionOf converts a node condition.
func ConditionOf(c corev1.NodeCondition) lb.NodeCondition {
	return lb.NodeCondition{Type: string(c.Type), Status: string(c.Status), Message: c.Message}
}

// ContainsFold reports whether names contains name, ignoring case like Azure.
func ContainsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
