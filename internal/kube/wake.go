// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolupdate"
)

// retryPause is how often at most an API server that answers some requests is tried again
// with those that it did not take, ahead of their back-off.
const retryPause = 30 * time.Second

// wake puts objects into their work queue from outside of it. The zero value is one whose
// controller does not run yet.
type wake struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// failed wait out a back-off for an error of the API server that may pass; they are
	// not taken out of it before retryAt.
	failed  map[reconcile.Request]struct{}
	retryAt time.Time
}

func (w *wake) source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

// add queues a BackendPool. Before the controller runs it does nothing: all of them
// are reconciled when it starts.
func (w *wake) add(ref poolupdate.Ref) {
	w.addName(client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
}

// addName is add for any object.
func (w *wake) addName(name client.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(reconcile.Request{NamespacedName: name})
	}
}

// noting returns a reconciler that notes what fails because of the API server.
func (w *wake) noting(next reconcile.Func) reconcile.Func {
	return func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := next(ctx, req)
		w.mu.Lock()
		defer w.mu.Unlock()
		_, azures := errors.AsType[*fault.Fault](err)
		if err == nil || azures || !passes(err) {
			delete(w.failed, req)
			return result, err
		}
		if w.failed == nil {
			w.failed = map[reconcile.Request]struct{}{}
		}
		w.failed[req] = struct{}{}
		return result, err
	}
}

// retry queues all that failed because of the API server. Their back-off has grown with
// the time for which it was unwell, up to 1000 s.
func (w *wake) retry(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.failed) == 0 || now.Before(w.retryAt) {
		return
	}
	w.retryAt = now.Add(retryPause)
	for req := range w.failed {
		w.queue.Add(req)
	}
	clear(w.failed)
}
