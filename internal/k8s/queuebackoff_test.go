// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/k8s/metadata"
)

func requestOf(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}}
}

// The delay of an object grows from 5 ms, doubling up to 1000 s, and is reset by a success.
func TestAFailingObjectWaitsLongerAndLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, web := DefaultQueueBackoff().NewRateLimiter(), requestOf("web")
		want := 5 * time.Millisecond
		for failure := 1; failure <= 40; failure++ {
			if got := limiter.When(web); got != want {
				t.Fatalf("failure %d waits %s, want %s", failure, got, want)
			}
			want = min(2*want, 1000*time.Second)
			time.Sleep(time.Second) // the bucket is full again
		}
		limiter.Forget(web)
		if got := limiter.When(web); got != 5*time.Millisecond {
			t.Errorf("after a success the first failure waits %s", got)
		}
	})
}

// Over all objects, 100 retries pass at once and then ten per second, and the longer delay applies.
func TestManyFailingObjectsComeBackAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := DefaultQueueBackoff().NewRateLimiter()
		for i := range 100 {
			if got := limiter.When(requestOf(string(rune('a' + i)))); got != 5*time.Millisecond {
				t.Fatalf("object %d of the burst waits %s", i, got)
			}
		}
		for i := range 50 {
			want := time.Duration(i+1) * 100 * time.Millisecond
			if got := limiter.When(requestOf(string(rune('A' + 500 + i)))); got.Round(time.Millisecond) != want {
				t.Fatalf("object %d beyond the burst waits %s, want %s", i, got, want)
			}
		}
		stubborn := requestOf("stubborn")
		for range 12 {
			limiter.When(stubborn)
		}
		if got := limiter.When(stubborn); got != 5*time.Millisecond<<12 {
			t.Errorf("its own wait of 20.48 s is longer than that for all, and it waits %s", got)
		}
	})
}

// With the real queue, neither events nor RequeueAfter wait for the limiter.
func TestEventsAndSetTimesAreNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := DefaultQueueBackoff().NewRateLimiter()
		queue := priorityqueue.New("requeue-test", func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
		defer queue.ShutDown()
		web, api := requestOf("web"), requestOf("api")
		for range 300 { // 85 years of backoff if continued; the bucket is empty for 20 s
			limiter.When(web)
		}
		start := time.Now()
		next := func(about string, want reconcile.Request, after time.Duration) {
			t.Helper()
			got, _ := queue.Get()
			if waited := time.Since(start).Round(time.Millisecond); got != want || waited != after {
				t.Errorf("%s: %s after %s, want %s after %s", about, got, waited, want, after)
			}
			queue.Done(got)
		}
		queue.AddRateLimited(web)
		synctest.Wait()
		queue.Add(web)
		next("an event for an object in back-off", web, 0)
		queue.Add(api)
		next("an event while the bucket is empty", api, 0)
		queue.AddAfter(api, 3*time.Second)
		next("a time that was set", api, 3*time.Second)
		queue.AddRateLimited(web)
		next("an error", web, 1003*time.Second)
	})
}

// The work queue retries only errors a reconciler returns, which are never Azure's: those stay with
// the workers.
func TestWorkQueueRetries(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	broken := errors.New("the API server does not answer")
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		err   error
		after time.Duration
		fails bool
	}{
		{"nothing to do", t.Context(), nil, 0, false},
		{"a time to look again", t.Context(), nil, time.Minute, false},
		{"an error", t.Context(), broken, 0, true},
		{"an error goes before a time", t.Context(), broken, time.Minute, true},
		{"gone", t.Context(), metadata.ErrDeleted, time.Minute, false},
		{"the process ends", stopped, broken, 0, false},
	} {
		result, err := ReconcileResult(tt.ctx, tt.err, tt.after)
		if (err != nil) != tt.fails || tt.err == nil && result.RequeueAfter != tt.after || tt.err != nil && result != (reconcile.Result{}) {
			t.Errorf("%s: %+v, %v", tt.name, result, err)
		}
		if _, azure := errors.AsType[*armerror.Fault](err); azure {
			t.Errorf("%s: an error of Azure goes to the work queue", tt.name)
		}
	}
}
