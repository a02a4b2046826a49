// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/backendpool"
)

// Result turns the end of a reconciliation into what the work queue does next. An
// error is the work queue's to retry; a BackendPool that is gone is no error, and
// neither is the end of the process. after is when to look again; 0 for only when
// something changes.
func Result(ctx context.Context, err error, after time.Duration) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: after}, nil
	case errors.Is(err, backendpool.ErrGone), ctx.Err() != nil:
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}
