// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/service"
)

// ghost stands in for a Service that is gone although Azure may hold something of it, because
// somebody took its finalizer away: it leaves as one that is being deleted does. Nil if
// nothing is known to be left. What this process recorded for it is surely Weir's.
func (c *Cluster) ghost(name types.NamespacedName) *corev1.Service {
	cl := c.claims.known(name)
	if cl == nil {
		return nil
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if len(cl.places) == 0 || cl.free {
		return nil
	}
	cl.ghost = true
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, UID: cl.uid,
			DeletionTimestamp: new(metav1.Now()), Finalizers: []string{ServiceFinalizer},
		},
		Spec:   corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: cl.ingress}},
	}
}

// haunted has the Service of a BackendPool that Weir made leave its load balancer, if it went
// while nobody watched. Whose it was the status tells, which only Weir writes.
func (c *Cluster) haunted(p *v1alpha1.BackendPool) {
	uid := types.UID(c.recordedFor(p))
	if c.balancers == nil || uid == "" || p.Spec.ServiceRef == nil || p.DeletionTimestamp == nil || !c.snap.made(p) {
		return
	}
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
	if get[corev1.Service](c.snap.services, name.String()) != nil ||
		slices.ContainsFunc(c.Reached(), func(r balancer.Reached) bool { return r.Owner == service.Owner(string(uid)) }) {
		return // it is there, or another has its name now
	}
	if c.claims.haunt(name, uid, p.Spec.LoadBalancer.Name) {
		c.balanced.addName(name)
	}
}

// haunt makes the claim of a Service that is gone, unless there is one of its name.
func (all *claims) haunt(name types.NamespacedName, uid types.UID, balancer string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all[name] != nil {
		return false
	}
	if all.all == nil {
		all.all = map[types.NamespacedName]*claim{}
	}
	all.all[name] = &claim{uid: uid, owner: service.Owner(string(uid)), places: []string{balancer}, had: true, announced: true}
	return true
}
