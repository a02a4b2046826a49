// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/armerror"
)

// Requests that failed because of the API server are retried once it responds, but not repeatedly
// while it rejects some requests.
func TestAPIServerErrorsAreRetried(t *testing.T) {
	pools := schema.GroupResource{Resource: "backendpools"}
	queue := &addOnly{}
	var q WorkQueue
	if err := q.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	ends := func(name string, err error) {
		_, _ = q.WrapReconciler(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, err })(t.Context(), requestOf(name))
	}
	tried := func(after time.Duration) string {
		now = now.Add(after)
		q.RetryFailed(now)
		var names []string
		for _, r := range queue.added {
			names = append(names, r.Name)
		}
		queue.added = nil
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	ends("fine", nil)
	ends("refused", apierrors.NewForbidden(pools, "refused", errors.New("no")))
	ends("conflict", apierrors.NewConflict(pools, "conflict", errors.New("no")))
	ends("azure", &armerror.Fault{Class: armerror.Terminal, Code: "AuthorizationFailed"})
	if got := tried(0); got != "" {
		t.Errorf("%s is tried again, and nothing came from the API server's health", got)
	}
	ends("broken", apierrors.NewInternalError(errors.New("etcd")))
	ends("busy", apierrors.NewTooManyRequests("later", 0))
	ends("away", context.DeadlineExceeded)
	ends("joined", errors.Join(apierrors.NewServiceUnavailable("x"), errors.New("y")))
	ends("over", apierrors.NewInternalError(errors.New("etcd")))
	ends("over", nil)
	if got := tried(0); got != "away broken busy joined" {
		t.Errorf("%s is tried again", got)
	}
	ends("broken", apierrors.NewInternalError(errors.New("a webhook is broken")))
	if got := tried(retryInterval - 1); got != "" {
		t.Errorf("%s is tried again and again", got)
	}
	if got := tried(1); got != "broken" {
		t.Errorf("%q is tried again", got)
	}
	if got := tried(time.Hour); got != "" {
		t.Errorf("%s is tried again, and it did not fail again", got)
	}
}

type addOnly struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []reconcile.Request
}

func (a *addOnly) Add(r reconcile.Request) { a.added = append(a.added, r) }

// Requests from before the controller runs are not lost.
func TestRequestsBeforeTheControllerRuns(t *testing.T) {
	queue := &addOnly{}
	var q WorkQueue
	for _, name := range []string{"a", "b", "a"} {
		q.Add(requestOf(name).NamespacedName)
	}
	if err := q.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	q.Add(requestOf("c").NamespacedName)
	var names []string
	for _, r := range queue.added {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "a b c" {
		t.Errorf("queued: %s", got)
	}
}
