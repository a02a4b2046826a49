// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Permission returns a BackendPool's claim to its pool, or why it has none.
func (ps *Pools) Permission(p *v1alpha1.BackendPool, at lb.PoolID) (backendpool.Permission, backendpool.Rejection) {
	if ps.IsCreatedByWeir(p) {
		return backendpool.Managed, backendpool.Rejection{}
	}
	own := ps.ManagesLoadBalancer(at.LoadBalancer)
	s := ps.managedService(p)
	isDedicated := own && s != nil && cache.ContainsFold(cache.DedicatedPools(s), at.Name)
	if isDedicated && ps.isServicePool(s, p, at) {
		return backendpool.Managed, backendpool.Rejection{}
	}
	allowed, known := ps.isAllowed(p.Namespace, service.LoadBalancersAnnotation, at.LoadBalancer)
	switch {
	case !known:
		return backendpool.NoPermission, backendpool.Rejection{Reason: v1alpha1.ReasonPending, Message: "whether its namespace may bind the pool is not known: Namespace " + p.Namespace + " has not been seen yet"}
	case !allowed && isDedicated:
		return backendpool.NoPermission, backendpool.Rejection{Reason: v1alpha1.ReasonPending, Message: fmt.Sprintf("Service %s has no rules on load balancer %s yet", metadata.Key(s.Namespace, s.Name), at.LoadBalancer.Name)}
	case !allowed:
		return backendpool.NoPermission, backendpool.Rejection{Reason: v1alpha1.ReasonNotAllowed, Message: forbiddenMessage(p.Namespace, at)}
	}
	if !own && p.Spec.Membership == v1alpha1.MembershipNetworkInterface {
		return backendpool.NoPermission, backendpool.Rejection{Reason: v1alpha1.ReasonNotAllowed, Message: interfaceMessage(at)}
	}
	// A deleted BackendPool still removes its addresses while no other has a stronger claim.
	if own && p.DeletionTimestamp == nil {
		if other := ps.otherUser(p, at); other != "" {
			return backendpool.NoPermission, backendpool.Rejection{Reason: v1alpha1.ReasonDuplicate, Message: fmt.Sprintf("%s is that of %s, and Weir fills it: bind another pool", backendpool.DescribePool(at), other)}
		}
	}
	return backendpool.Granted, backendpool.Rejection{}
}

// UsesInterfaces reports whether a pool's members are network interfaces.
func (ps *Pools) UsesInterfaces(p *v1alpha1.BackendPool) bool {
	switch p.Spec.Membership {
	case v1alpha1.MembershipNetworkInterface:
		return true
	case v1alpha1.MembershipAuto:
		return ps.Settings.Interfaces && ps.Settings.ConvertsPools && ps.IsCreatedByWeir(p)
	}
	return false
}

// Azure allows an interface in one public and one internal load balancer.
func interfaceMessage(at lb.PoolID) string {
	return fmt.Sprintf("load balancer %s is none of the cluster's own, and a network interface can be in the pools of one load balancer alone: set membership to Address, and name a pool of IP addresses",
		at.LoadBalancer.Name)
}

func forbiddenMessage(namespace string, at lb.PoolID) string {
	return fmt.Sprintf("namespace %s may not bind pools of load balancer %s: nothing is read or written for this BackendPool, and the pool keeps its members. "+
		"A cluster administrator can allow it with annotation %s of the Namespace, with %s/%s/%s in its list",
		namespace, at.LoadBalancer.Name, service.LoadBalancersAnnotation, at.LoadBalancer.SubscriptionID, at.LoadBalancer.ResourceGroup, at.LoadBalancer.Name)
}

// AllowsGatewayLoadBalancer reports whether Services of a namespace may chain frontends to a gateway load balancer; known is
// false before the Namespace was seen.
func (ps *Pools) AllowsGatewayLoadBalancer(namespace string, balancer lb.LoadBalancerID) (allowed, known bool) {
	return ps.isAllowed(namespace, service.GatewayLoadBalancersAnnotation, balancer)
}

func (ps *Pools) isAllowed(namespace, grant string, balancer lb.LoadBalancerID) (allowed, known bool) {
	if namespace == ps.Namespace {
		return true, true
	}
	ns := cache.Get[corev1.Namespace](ps.View.Namespaces, namespace)
	if ns == nil {
		return ps.AllowUnknown, ps.AllowUnknown
	}
	home := lb.LoadBalancerID{SubscriptionID: ps.View.Placement.SubscriptionID, ResourceGroup: ps.View.Placement.ResourceGroup}
	return service.IsLoadBalancerAllowed(ns.Annotations[grant], home, balancer), true
}

// AllowedPublicIPs returns the annotation service.PublicIPAnnotation of a Namespace.
func (ps *Pools) AllowedPublicIPs(namespace string) string {
	if ns := cache.Get[corev1.Namespace](ps.View.Namespaces, namespace); ns != nil {
		return ns.Annotations[service.PublicIPAnnotation]
	}
	if ps.AllowUnknown {
		return "*"
	}
	return ""
}

// otherUser returns the other user of a managed pool, if any.
func (ps *Pools) otherUser(p *v1alpha1.BackendPool, at lb.PoolID) string {
	if p.Namespace != ps.Namespace && cache.ContainsFold(ps.Settings.NodePools(), at.Name) {
		return "all nodes"
	}
	for _, s := range cache.List[corev1.Service](ps.View.Services, cache.ServicesByPool, strings.ToLower(at.Name)) {
		matches := p.Spec.ServiceRef != nil && s.Namespace == p.Namespace && s.Name == p.Spec.ServiceRef.Name
		if ps.View.Serving.IsManaged(s) && !matches && ps.hasOwnPools(s) && cache.ContainsFold(ps.serviceWithPools(s).DedicatedPools(), at.Name) {
			return "Service " + metadata.Key(s.Namespace, s.Name)
		}
	}
	return ""
}

// PoolsForService returns all BackendPools at the pools a Service may own.
func (ps *Pools) PoolsForService(s *corev1.Service) []*v1alpha1.BackendPool {
	var pools []*v1alpha1.BackendPool
	if ps.LoadBalancers == nil {
		return nil
	}
	for _, balancer := range ps.LoadBalancers.Names() {
		for _, name := range cache.DedicatedPools(s) {
			pools = append(pools, ps.View.PoolsAt(lb.PoolID{LoadBalancer: ps.LoadBalancers.ID(balancer), Name: name}.Key())...)
		}
	}
	return pools
}
