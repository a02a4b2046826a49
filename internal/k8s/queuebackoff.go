// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/ratelimit"
)

// QueueBackoff configures retries after a reconciler error. Events and RequeueAfter are not delayed.
type QueueBackoff struct {
	// BaseDelay doubles with each failure, up to MaxDelay.
	BaseDelay, MaxDelay time.Duration
	// QPS and Burst limit the retries of a queue. The longer delay applies.
	QPS   float64
	Burst int
}

// DefaultQueueBackoff returns the traditional controller settings.
func DefaultQueueBackoff() QueueBackoff {
	return QueueBackoff{BaseDelay: 5 * time.Millisecond, MaxDelay: 1000 * time.Second, QPS: 10, Burst: 100}
}

// Validate returns an error that names the field.
func (b QueueBackoff) Validate() error {
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

// ItemBackoff returns the delay per request, without the shared limit.
func (b QueueBackoff) ItemBackoff() ratelimit.Exponential {
	if b == (QueueBackoff{}) {
		b = DefaultQueueBackoff()
	}
	return ratelimit.Exponential{Initial: b.BaseDelay, Max: b.MaxDelay}
}

// NewRateLimiter returns the rate limiter for a controller.
func (b QueueBackoff) NewRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](b.BaseDelay, b.MaxDelay),
		&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(rate.Limit(b.QPS), b.Burst)},
	)
}
