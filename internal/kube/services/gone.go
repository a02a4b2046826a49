// SPDX-License-Identifier: Apache-2.0

package services

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/service"
)

// Goes has the Service of a BackendPool that Weir made leave its load balancer, if it went
// while nobody watched. Whose it was the status tells, which only Weir writes.
func (r *Reconciler) Goes(p *v1alpha1.BackendPool) {
	uid := types.UID(r.own.RecordedFor(p))
	if r.balancers == nil || uid == "" || p.Spec.ServiceRef == nil || p.DeletionTimestamp == nil || !r.own.Made(p) {
		return
	}
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
	if view.Get[corev1.Service](r.view.Services, name.String()) != nil ||
		slices.ContainsFunc(r.Reached(), func(r balancer.Reached) bool { return r.Owner == service.Owner(string(uid)) }) {
		return // it is there, or another has its name now
	}
	if r.decide.States.Absent(name.String(), string(uid), p.Spec.LoadBalancer.Name) {
		r.queue.Add(name)
	}
}
