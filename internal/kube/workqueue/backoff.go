// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/backoff"
)

// Backoff is the back-off of a work queue: how long a request waits whose
// reconciliation returned an error. An event is not held up by it, nor is a look at a
// pool that was set for a time.
type Backoff struct {
	// BaseDelay is the wait after a request's first failure; each further one doubles
	// it, up to MaxDelay. A success starts over.
	BaseDelay, MaxDelay time.Duration
	// QPS and Burst bound what comes back over all requests of a queue. A request waits
	// for whichever of the two takes longer.
	QPS   float64
	Burst int
}

// DefaultBackoff is what controllers of Kubernetes have always done. The queue of
// controller-runtime leaves out the second half of it if it is not told.
func DefaultBackoff() Backoff {
	return Backoff{BaseDelay: 5 * time.Millisecond, MaxDelay: 1000 * time.Second, QPS: 10, Burst: 100}
}

// Validate names the field that makes no back-off.
func (b Backoff) Validate() error {
	switch {
	case b.BaseDelay <= 0:
		return fmt.Errorf("base-delay %s: want more than 0, or a failing request would spin", b.BaseDelay)
	case b.MaxDelay < b.BaseDelay:
		return fmt.Errorf("max-delay %s: want at least the base delay, %s", b.MaxDelay, b.BaseDelay)
	case !(b.QPS > 0) || math.IsInf(b.QPS, 1):
		return fmt.Errorf("qps %v: want a number above 0", b.QPS)
	case b.Burst < 1:
		return errors.New("burst " + fmt.Sprint(b.Burst) + ": want at least 1, or nothing would ever come back")
	}
	return nil
}

// Doubling is the part that counts the failures of one request. The bucket that all share would
// have the failures of some delay the next try of others.
func (b Backoff) Doubling() backoff.Doubling {
	if b == (Backoff{}) {
		b = DefaultBackoff()
	}
	return backoff.Doubling{First: b.BaseDelay, Max: b.MaxDelay}
}

// RateLimiter is what a controller is given.
func (b Backoff) RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](b.BaseDelay, b.MaxDelay),
		&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(rate.Limit(b.QPS), b.Burst)},
	)
}
