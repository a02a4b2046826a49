// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/view"
)

// Options are those of Balance.
func (r *Reconciler) Options() Options { return r.options }

// WhyKept says why all that a Service has in Azure stays as it is, though it is not served; empty
// if it does not.
func (r *Reconciler) WhyKept(s *corev1.Service) string { return r.decide.WhyKept(view.ServiceLB(s)) }

// Request returns what is asked for a Service, and why it is refused.
func (r *Reconciler) Request(ctx context.Context, s *corev1.Service) (req balancer.Request, refused string, err error) {
	return r.decide.Request(ctx, r.balancers, view.ServiceLB(s))
}

// WriteDown makes and deletes BackendPools as a controller does when a request is done.
func (r *Reconciler) WriteDown(ctx context.Context, result balancer.Result) error {
	return r.decide.WriteDown(ctx, result)
}
