// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/leader"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/skumigration"
)

// recordStore stores Weir's record: the cluster name, its place in Azure, and the stores of other packages.
type recordStore struct {
	api                       client.Client // fenced: writes only while leading
	namespace, cluster, place string
	owedAddresses             *skumigration.AddressClaims // addresses that a migration must restore
}

func newRecord(o Options, cfg config.Config, rc *rest.Config, namespace string, fence *leader.Fence) (recordStore, error) {
	api, err := client.New(k8s.WithFence(rc, fence), client.Options{Scheme: metadata.Scheme()})
	if err != nil {
		return recordStore{}, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return recordStore{api, namespace, o.ClusterName, resourceGroupID(cfg), &skumigration.AddressClaims{}}, nil
}

// checkAtStart rejects a configuration that contradicts the record. Without leader election it also writes the
// record; a standby must not.
func (r recordStore) checkAtStart(ctx context.Context, elected bool) error {
	if elected {
		return explainError(store.Check(ctx, r.api, r.namespace, r.cluster, r.place))
	}
	return explainError(store.CheckAndStore(ctx, r.api, r.api, r.namespace, r.cluster, r.place))
}

// saveOnLeading returns the first step of a new leader. It cancels leadership if the record now contradicts the
// configuration because another leader changed it.
func (r recordStore) saveOnLeading(cancel context.CancelCauseFunc) func(context.Context) error {
	return func(ctx context.Context) error {
		err := explainError(store.CheckAndStore(ctx, r.api, r.api, r.namespace, r.cluster, r.place))
		if _, usage := errors.AsType[*UsageError](err); usage || apierrors.IsForbidden(err) {
			cancel(&process.StartError{Err: err})
		}
		return err
	}
}

func (r recordStore) publicIPOwnerStore() publicip.OwnerStore {
	return store.PublicIPOwners{Reader: r.api, Writer: r.api, Namespace: r.namespace}
}

func (r recordStore) publicIPGroupStore() publicip.GroupStore {
	return store.PublicIPGroups{Reader: r.api, Writer: r.api, Namespace: r.namespace}
}

func (r recordStore) privateIPStore() loadbalancer.PrivateIPStore {
	return store.PrivateIPReservations{Reader: r.api, Writer: r.api, Namespace: r.namespace}
}

func (r recordStore) leftPoolStore(log *slog.Logger) loadbalancer.LeftPoolStore {
	return store.ReleasedPools{Reader: r.api, Writer: r.api, Namespace: r.namespace, Log: log}
}

func explainError(err error) error {
	if _, other := errors.AsType[*store.ConflictError](err); other {
		return &UsageError{Err: err}
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("weir cannot keep its record: apply config/rbac (kubectl apply --server-side -k config), which has the Role weir-record: %w", err)
	}
	return err
}
