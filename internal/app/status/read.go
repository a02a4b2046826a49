// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/leases"
)

// LeaseName is the leader's Lease.
const LeaseName = "weir-controller"

// Snapshot is a snapshot of Weir's objects.
type Snapshot struct {
	At          time.Time
	Leader      Leader
	Pools       []v1alpha1.BackendPool
	Services    []corev1.Service
	Provisioner Provisioner
}

// ReadSnapshot takes a snapshot of a namespace; empty means all. The leader is unknown if the caller may not list
// Leases.
func ReadSnapshot(ctx context.Context, api client.Reader, namespace string, now time.Time) (Snapshot, error) {
	seen := Snapshot{At: now}
	var pools v1alpha1.BackendPoolList
	if err := api.List(ctx, &pools, client.InNamespace(namespace)); meta.IsNoMatchError(err) {
		return Snapshot{}, fmt.Errorf("the API server knows no BackendPools: kubectl apply -k config/crd installs them: %w", err)
	} else if err != nil {
		return Snapshot{}, fmt.Errorf("reading BackendPools: %w", err)
	}
	var services corev1.ServiceList
	if err := api.List(ctx, &services, client.InNamespace(namespace)); err != nil {
		return Snapshot{}, fmt.Errorf("reading Services: %w", err)
	}
	var err error
	if seen.Leader, err = readLeader(ctx, api, LeaseName, now); err != nil {
		return Snapshot{}, err
	}
	if seen.Provisioner, err = ReadProvisioner(ctx, api, namespace, now); err != nil {
		return Snapshot{}, err
	}
	seen.Pools, seen.Services = pools.Items, services.Items
	return seen, nil
}

func readLeader(ctx context.Context, api client.Reader, name string, now time.Time) (Leader, error) {
	leader, err := leases.FindLeader(ctx, api, name, now)
	switch {
	case apierrors.IsForbidden(err):
		return Leader{}, nil
	case err != nil:
		return Leader{}, err
	}
	return Leader{Known: true, Holder: leader.Holder, Last: leader.PreviousHolder, Renewed: leader.RenewTime, Namespace: leader.Namespace}, nil
}
