// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/grant"
	"weir.dev/weir/internal/lb"
)

// rightOf says which right a BackendPool has to its pool, and why it has none.
func (c *Cluster) rightOf(p *v1alpha1.BackendPool, at lb.PoolID) (backendpool.Right, backendpool.Refusal) {
	if c.snap.made(p) {
		return backendpool.Own, backendpool.Refusal{}
	}
	own := c.owns(at.LoadBalancer)
	s := c.servedService(p)
	its := own && s != nil && containsFold(c.ownPools(s), at.Name)
	if its && c.fills(s, p, at) {
		return backendpool.Own, backendpool.Refusal{}
	}
	allowed, known := c.allowed(p.Namespace, at.LoadBalancer)
	switch {
	case !known:
		return backendpool.NoRight, backendpool.Refusal{Reason: v1alpha1.ReasonPending, Why: "whether its namespace may bind the pool is not known: Namespace " + p.Namespace + " has not been seen yet"}
	case !allowed && its:
		return backendpool.NoRight, backendpool.Refusal{Reason: v1alpha1.ReasonPending, Why: fmt.Sprintf("Service %s has no rules on load balancer %s yet", key(s.Namespace, s.Name), at.LoadBalancer.Name)}
	case !allowed:
		return backendpool.NoRight, backendpool.Refusal{Reason: v1alpha1.ReasonNotAllowed, Why: notAllowed(p.Namespace, at)}
	}
	// One that goes takes its addresses out, while nobody has more right to the pool.
	if own && p.DeletionTimestamp == nil {
		if whose := c.neededBy(p, at); whose != "" {
			return backendpool.NoRight, backendpool.Refusal{Reason: v1alpha1.ReasonDuplicate, Why: fmt.Sprintf("%s is that of %s, and Weir fills it: bind another pool", backendpool.DescribePool(at), whose)}
		}
	}
	return backendpool.Granted, backendpool.Refusal{}
}

func notAllowed(namespace string, at lb.PoolID) string {
	return fmt.Sprintf("namespace %s may not bind pools of load balancer %s: nothing is read or written for this BackendPool, and what is in the pool stays. "+
		"Who administers the cluster allows it by the annotation %s of the Namespace, with %s/%s/%s in its list",
		namespace, at.LoadBalancer.Name, grant.Annotation, at.LoadBalancer.SubscriptionID, at.LoadBalancer.ResourceGroup, at.LoadBalancer.Name)
}

// allowed reports whether an administrator allows a load balancer to a namespace. Weir's own
// may bind everything.
func (c *Cluster) allowed(namespace string, balancer lb.LoadBalancerID) (is, known bool) {
	if namespace == c.balancing.Namespace {
		return true, true
	}
	ns := get[corev1.Namespace](c.snap.namespaces, namespace)
	if ns == nil {
		return c.allowsUnseen, c.allowsUnseen
	}
	home := lb.LoadBalancerID{SubscriptionID: c.snap.place.subscriptionID, ResourceGroup: c.snap.place.resourceGroup}
	return grant.Allows(ns.Annotations[grant.Annotation], home, balancer), true
}

// neededBy says whose a pool of the cluster's own load balancers is, if it is not that of
// the Service of a BackendPool; empty if it is nobody's.
func (c *Cluster) neededBy(p *v1alpha1.BackendPool, at lb.PoolID) string {
	if p.Namespace != c.balancing.Namespace && containsFold(c.balancing.Settings.SharedPools(), at.Name) {
		return "all nodes"
	}
	for _, s := range list[corev1.Service](c.snap.services, servicesByPool, strings.ToLower(at.Name)) {
		its := p.Spec.ServiceRef != nil && s.Namespace == p.Namespace && s.Name == p.Spec.ServiceRef.Name
		if c.ours(s) && !its && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal && containsFold(c.wishOf(s).OwnPools(), at.Name) {
			return "Service " + key(s.Namespace, s.Name)
		}
	}
	return ""
}

// poolsIn maps a namespace to its BackendPools, and to those that name the same pools.
func (c *Cluster) poolsIn(ctx context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, p := range list[v1alpha1.BackendPool](c.snap.pools, poolsByNamespace, obj.GetName()) {
		requests = append(requests, c.poolAndRivals(ctx, p)...)
	}
	return requests
}

// grantChanged lets through what changes which load balancers a namespace may bind.
func grantChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(u event.UpdateEvent) bool {
			return u.ObjectOld.GetAnnotations()[grant.Annotation] != u.ObjectNew.GetAnnotations()[grant.Annotation]
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// poolsAtOf are the BackendPools of the pools that a Service may have for itself, whosever
// they are: it comes before others there.
func (c *Cluster) poolsAtOf(s *corev1.Service) []*v1alpha1.BackendPool {
	var all []*v1alpha1.BackendPool
	if c.balancers == nil {
		return nil
	}
	for _, balancer := range c.balancers.Names() {
		for _, name := range c.ownPools(s) {
			all = append(all, c.snap.poolsAt(lb.PoolID{LoadBalancer: c.balancers.ID(balancer), Name: name}.Key())...)
		}
	}
	return all
}
