// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/kube/apiserver"
)

// retryPause is how often at most an API server that answers some requests is tried again
// with those that it did not take, ahead of their back-off.
const retryPause = 30 * time.Second

// Queue is the work queue of a controller, as seen from outside of it. The zero value is one whose
// controller does not run yet.
type Queue struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// failed wait out a back-off for an error of the API server that may pass; they are
	// not taken out of it before retryAt.
	failed  map[reconcile.Request]struct{}
	retryAt time.Time
}

// Source takes the queue from its controller, when that starts.
func (q *Queue) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.queue = queue
		return nil
	})
}

// Add queues an object. Before the controller runs it does nothing: all objects are
// reconciled when it starts.
func (q *Queue) Add(name types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue != nil {
		q.queue.Add(reconcile.Request{NamespacedName: name})
	}
}

// Reconciler returns a reconciler that notes what fails because of the API server.
func (q *Queue) Reconciler(next reconcile.Func) reconcile.Func {
	return func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := next(ctx, req)
		q.mu.Lock()
		defer q.mu.Unlock()
		_, azures := errors.AsType[*fault.Fault](err)
		if err == nil || azures || !apiserver.Passes(err) {
			delete(q.failed, req)
			return result, err
		}
		if q.failed == nil {
			q.failed = map[reconcile.Request]struct{}{}
		}
		q.failed[req] = struct{}{}
		return result, err
	}
}

// Retry queues all that failed because of the API server. Their back-off has grown with
// the time for which it was unwell, up to 1000 s.
func (q *Queue) Retry(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.failed) == 0 || now.Before(q.retryAt) {
		return
	}
	q.retryAt = now.Add(retryPause)
	for req := range q.failed {
		q.queue.Add(req)
	}
	clear(q.failed)
}
