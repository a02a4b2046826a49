// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/ensure"
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

// canonical is how an API server spells the UIDs that it gives. Names in Azure have no
// capitals, so that another spelling would be another Service's name there.
var canonical = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// haunted has the Service of a BackendPool that Weir made leave its load balancer, if it went
// while nobody watched: the BackendPool goes with it, and names it.
func (c *Cluster) haunted(p *v1alpha1.BackendPool) {
	if c.balancers == nil || !madeByWeir(p) || p.Spec.ServiceRef == nil || p.DeletionTimestamp == nil {
		return
	}
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
	at := slices.IndexFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Service" && o.Name == name.Name })
	if at < 0 || get[corev1.Service](c.snap.services, name.String()) != nil {
		return
	}
	uid := p.OwnerReferences[at].UID
	if !canonical.MatchString(string(uid)) || slices.ContainsFunc(c.Reached(), func(r ensure.Reached) bool { return r.Owner == service.Owner(string(uid)) }) {
		return // somebody wrote that reference who is not Weir
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
