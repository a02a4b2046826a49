// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Annotations of a leader election Lease: what the leader is, for commands that have no other way to it.
const (
	VersionAnnotation = "weir.dev/version"
	// ClassAnnotation is the spec.loadBalancerClass that the leader serves; empty means Services without one.
	ClassAnnotation = "weir.dev/load-balancer-class"
)

// annotatedLeases adds annotations to each Lease that it writes.
type annotatedLeases struct {
	coordinationclient.CoordinationV1Interface

	annotations map[string]string
}

// Leases implements CoordinationV1Interface.
func (a annotatedLeases) Leases(namespace string) coordinationclient.LeaseInterface {
	return annotatedLease{a.CoordinationV1Interface.Leases(namespace), a.annotations}
}

type annotatedLease struct {
	coordinationclient.LeaseInterface

	annotations map[string]string
}

// Create implements LeaseInterface.
func (a annotatedLease) Create(ctx context.Context, l *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return a.LeaseInterface.Create(ctx, a.annotate(l), opts)
}

// Update implements LeaseInterface.
func (a annotatedLease) Update(ctx context.Context, l *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return a.LeaseInterface.Update(ctx, a.annotate(l), opts)
}

func (a annotatedLease) annotate(l *coordinationv1.Lease) *coordinationv1.Lease {
	l = l.DeepCopy()
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	maps.Copy(l.Annotations, a.annotations)
	return l
}
