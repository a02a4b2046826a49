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
	"weir.dev/weir/internal/kube/leases"
	"weir.dev/weir/internal/kube/record"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lead"
	"weir.dev/weir/internal/leftpool"
	"weir.dev/weir/internal/migration"
	"weir.dev/weir/internal/privateip"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/verdicts"
)

// recorded stores Weir's record: the cluster name, its place in Azure, and the stores of other packages.
type recorded struct {
	api                       client.Client // fenced: writes only while leading
	namespace, cluster, place string
	owed                      *migration.Owed // addresses that a migration must restore
}

func newRecord(o Options, cfg config.Config, rc *rest.Config, namespace string, fence *lead.Fence) (recorded, error) {
	api, err := client.New(leases.Fenced(rc, fence), client.Options{Scheme: view.Scheme()})
	if err != nil {
		return recorded{}, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return recorded{api, namespace, o.ClusterName, place(cfg), &migration.Owed{}}, nil
}

// atStart rejects a configuration that contradicts the record. Without leader election it also writes the
// record; a standby must not.
func (r recorded) atStart(ctx context.Context, elected bool) error {
	if elected {
		return explained(record.Check(ctx, r.api, r.namespace, r.cluster, r.place))
	}
	return explained(record.Keep(ctx, r.api, r.api, r.namespace, r.cluster, r.place))
}

// kept returns the first step of a new leader. It cancels leadership if the record now contradicts the
// configuration because another leader changed it.
func (r recorded) kept(giveUp context.CancelCauseFunc) func(context.Context) error {
	return func(ctx context.Context) error {
		err := explained(record.Keep(ctx, r.api, r.api, r.namespace, r.cluster, r.place))
		if _, usage := errors.AsType[*UsageError](err); usage || apierrors.IsForbidden(err) {
			giveUp(&process.CannotBegin{Err: err})
		}
		return err
	}
}

func (r recorded) wholeWrites(o Options) verdicts.Store {
	return record.WholeWrites{Reader: r.api, Writer: r.api, Namespace: r.namespace, Version: Version, Log: o.Log}
}

func (r recorded) publicIPOwners() publicip.OwnerStore {
	return record.PublicIPOwners{Reader: r.api, Writer: r.api, Namespace: r.namespace}
}

func (r recorded) privateIPs() privateip.Store {
	return record.PrivateIPReservations{Reader: r.api, Writer: r.api, Namespace: r.namespace}
}

func (r recorded) leftPools(log *slog.Logger) leftpool.Store {
	return record.LeftPools{Reader: r.api, Writer: r.api, Namespace: r.namespace, Log: log}
}

func explained(err error) error {
	if _, other := errors.AsType[*record.ContradictionError](err); other {
		return &UsageError{Err: err}
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("weir cannot keep its record: apply config/rbac (kubectl apply --server-side -k config), which has the Role weir-record: %w", err)
	}
	return err
}
