// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/k8s/metadata"
)

// ReconcileResult converts the outcome of a reconciliation. after is the requeue delay; 0 waits for a
// change.
func ReconcileResult(ctx context.Context, err error, after time.Duration) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: after}, nil
	case errors.Is(err, metadata.ErrDeleted), ctx.Err() != nil:
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}
