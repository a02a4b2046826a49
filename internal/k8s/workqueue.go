// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"weir.dev/weir/internal/armerror"
)

// retryInterval limits early retries while the API server answers only some requests.
const retryInterval = 30 * time.Second

// WorkQueue gives access to a controller's work queue. The zero value is ready to use. Safe for
// concurrent use.
type WorkQueue struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// early are the requests from before the controller runs.
	early map[reconcile.Request]struct{}
	// failedRequests are in back-off after a transient API server error, and retried early from retryAt on.
	failedRequests map[reconcile.Request]struct{}
	retryAt        time.Time
}

// Source receives the queue when the controller starts.
func (q *WorkQueue) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.queue = queue
		for req := range q.early {
			queue.Add(req)
		}
		q.early = nil
		return nil
	})
}

// Add queues an object, before the controller runs, too.
func (q *WorkQueue) Add(name types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch req := (reconcile.Request{NamespacedName: name}); {
	case q.queue != nil:
		q.queue.Add(req)
	case q.early == nil:
		q.early = map[reconcile.Request]struct{}{req: {}}
	default:
		q.early[req] = struct{}{}
	}
}

// WrapReconciler wraps next to track failures of the API server.
func (q *WorkQueue) WrapReconciler(next reconcile.Func) reconcile.Func {
	return func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := next(ctx, req)
		q.mu.Lock()
		defer q.mu.Unlock()
		_, isAzure := errors.AsType[*armerror.Fault](err)
		if err == nil || isAzure || !IsTransient(err) {
			delete(q.failedRequests, req)
			return result, err
		}
		if q.failedRequests == nil {
			q.failedRequests = map[reconcile.Request]struct{}{}
		}
		q.failedRequests[req] = struct{}{}
		return result, err
	}
}

// RetryFailed queues what failed because of the API server. Its back-off may have grown to 1000 s.
func (q *WorkQueue) RetryFailed(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.failedRequests) == 0 || now.Before(q.retryAt) {
		return
	}
	q.retryAt = now.Add(retryInterval)
	for req := range q.failedRequests {
		q.queue.Add(req)
	}
	clear(q.failedRequests)
}
