// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/service"
)

// leaveFor has the Service of a BackendPool that Weir made leave its load balancer, if it went
// while nobody watched. Whose it was the status tells, which only Weir writes.
func (c *Cluster) leaveFor(p *v1alpha1.BackendPool) {
	uid := types.UID(c.recordedFor(p))
	if c.balancers == nil || uid == "" || p.Spec.ServiceRef == nil || p.DeletionTimestamp == nil || !c.snap.made(p) {
		return
	}
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
	if get[corev1.Service](c.snap.services, name.String()) != nil ||
		slices.ContainsFunc(c.Reached(), func(r balancer.Reached) bool { return r.Owner == service.Owner(string(uid)) }) {
		return // it is there, or another has its name now
	}
	if c.serviceLBs.States.Absent(name.String(), string(uid), p.Spec.LoadBalancer.Name) {
		c.balanced.addName(name)
	}
}
