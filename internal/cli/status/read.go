// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
)

// LeaseName is the leader's Lease.
const LeaseName = "weir-controller"

// Snapshot is a snapshot of Weir's objects.
type Snapshot struct {
	At          time.Time
	Leader      Leader
	Pools       []v1alpha1.BackendPool
	Services    []corev1.Service
	Gateways    Gateways
	Provisioner Provisioner
	// Installation is Weir's Deployment.
	Installation Installation
	// Namespace is the one that was read; empty means all.
	Namespace string
	// Health is nil unless it was read; see ReadHealth.
	Health *Health
}

// ReadSnapshot takes a snapshot of a namespace; empty means all. The leader is unknown if the caller may not list
// Leases.
func ReadSnapshot(ctx context.Context, api client.Reader, namespace string, now time.Time) (Snapshot, error) {
	seen := Snapshot{At: now, Namespace: namespace}
	var pools v1alpha1.BackendPoolList
	if err := api.List(ctx, &pools, client.InNamespace(namespace)); meta.IsNoMatchError(err) {
		return Snapshot{}, &notServedError{err}
	} else if err != nil {
		return Snapshot{}, fmt.Errorf("reading BackendPools: %w", err)
	}
	var services corev1.ServiceList
	if err := api.List(ctx, &services, client.InNamespace(namespace)); err != nil {
		return Snapshot{}, fmt.Errorf("reading Services: %w", err)
	}
	var err error
	if seen.Gateways, err = ReadGateways(ctx, api, namespace); err != nil {
		return Snapshot{}, err
	}
	running, err := ReadRunning(ctx, api, now)
	if err != nil {
		return Snapshot{}, err
	}
	seen.Leader, seen.Installation = running.Leader, running.Installation
	if seen.Provisioner, err = ReadProvisioner(ctx, api, namespace, now); err != nil {
		return Snapshot{}, err
	}
	seen.Pools, seen.Services = pools.Items, services.Items
	return seen, nil
}

// notServedError is that the API server does not serve BackendPools, without the details of its discovery.
type notServedError struct{ err error }

func (*notServedError) Error() string {
	return "the API server does not serve BackendPools: Weir is not installed in this cluster, or only in part; weir doctor has the fix"
}

func (e *notServedError) Unwrap() error { return e.err }

// ReadRunning takes a snapshot of the leader and the Deployment alone.
func ReadRunning(ctx context.Context, api client.Reader, now time.Time) (seen Snapshot, err error) {
	seen.At = now
	if seen.Leader, err = ReadLeader(ctx, api, now); err != nil {
		return Snapshot{}, err
	}
	seen.Installation, err = ReadInstallation(ctx, api, "")
	return seen, err
}

func readLeader(ctx context.Context, api client.Reader, name string, now time.Time) (Leader, error) {
	leader, err := k8s.FindLeader(ctx, api, name, now)
	switch {
	case apierrors.IsForbidden(err):
		return Leader{}, nil
	case err != nil:
		return Leader{}, err
	}
	return NewLeader(leader), nil
}

// ReadLeader returns the leader of the controller. It is unknown if the caller may not list Leases.
func ReadLeader(ctx context.Context, api client.Reader, now time.Time) (Leader, error) {
	return readLeader(ctx, api, LeaseName, now)
}

// ReadLeaderOf is ReadLeader, and reads the Lease of Weir's namespace alone if the caller may not list those of all
// namespaces, as Weir itself. all is false then.
func ReadLeaderOf(ctx context.Context, api client.Reader, namespace string, now time.Time) (leader Leader, all bool, err error) {
	if leader, err = ReadLeader(ctx, api, now); err != nil || leader.Known {
		return leader, true, err
	}
	var lease coordinationv1.Lease
	err = api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: LeaseName}, &lease)
	switch {
	case err == nil:
		return NewLeader(k8s.NewLeaderStatus(&lease, now)), false, nil
	case apierrors.IsNotFound(err):
		return Leader{Known: true}, false, nil
	case apierrors.IsForbidden(err):
		return Leader{}, false, nil
	}
	return Leader{}, false, fmt.Errorf("reading Lease %s/%s: %w", namespace, LeaseName, err)
}

// CheckNamespace returns an error if a namespace does not exist. Without the right to get it, what is in it may still be readable.
func CheckNamespace(ctx context.Context, api client.Reader, name string) error {
	if name == "" {
		return nil
	}
	var ns corev1.Namespace
	switch err := api.Get(ctx, client.ObjectKey{Name: name}, &ns); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no namespace %q: kubectl get namespaces lists them", name)
	case err != nil && !apierrors.IsForbidden(err):
		return fmt.Errorf("reading namespace %q: %w", name, err)
	}
	return nil
}
