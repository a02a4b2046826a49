// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"weir.dev/weir/internal/ratelimit"
)

// FairBudget is an amount that is taken and released. A request that does not fit blocks all later
// ones, so that small ones cannot starve it. A namespace that holds more than its share is skipped.
// Safe for concurrent use.
type FairBudget struct {
	share int64

	mu           sync.Mutex
	available    int64
	usage        map[string]int64 // by namespace
	reservations map[*FairReservation]bool
	line         ratelimit.Rotation
	waiting      []*waiter // in order of arrival
}

type waiter struct {
	namespace   string
	amount      int64
	granted     chan struct{} // closed when granted
	reservation *FairReservation
}

// NewFairBudget returns a Budget. A namespace holding more than share gets no more.
func NewFairBudget(total, share int64) *FairBudget {
	return &FairBudget{available: total, share: share, usage: map[string]int64{}, reservations: map[*FairReservation]bool{}}
}

// FairReservation is an amount taken from a Budget.
type FairReservation struct {
	budget    *FairBudget
	namespace string
	amount    int64 // amount and isReduced are guarded by the budget's mutex
	isReduced bool
	preempted chan struct{}
}

// PreemptionSignal is closed when another namespace waits for what the caller kept after a reduction. The
// caller should release it then.
func (f *FairReservation) PreemptionSignal() <-chan struct{} { return f.preempted }

// Acquire waits for the amount and the namespace's turn. The caller must release the result, and must
// not wait for another one of this budget before.
func (b *FairBudget) Acquire(ctx context.Context, namespace string, amount int64) (*FairReservation, error) {
	w := &waiter{namespace: namespace, amount: amount, granted: make(chan struct{})}
	w.reservation = &FairReservation{budget: b, namespace: namespace, amount: amount, preempted: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.grantWaiting()
	b.mu.Unlock()
	select {
	case <-w.granted:
		return w.reservation, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.waiting, w); at >= 0 {
		b.waiting = slices.Delete(b.waiting, at, at+1)
	} else { // granted while the context ended
		b.addUsage(namespace, -amount)
		delete(b.reservations, w.reservation)
	}
	b.grantWaiting()
	return nil, context.Cause(ctx)
}

func (b *FairBudget) addUsage(namespace string, amount int64) {
	b.available -= amount
	if b.usage[namespace] += amount; b.usage[namespace] == 0 {
		delete(b.usage, namespace)
	}
}

func (b *FairBudget) grantWaiting() {
	for {
		namespaces := make([]string, len(b.waiting))
		for i, w := range b.waiting {
			namespaces[i] = w.namespace
		}
		b.line.SetNamespaces(namespaces)
		next := -1
		for i, w := range b.waiting {
			if b.usage[w.namespace] <= b.share && (next < 0 || b.line.OrderOf(w.namespace) < b.line.OrderOf(b.waiting[next].namespace)) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		if b.waiting[next].amount > b.available {
			b.preemptOthers(b.waiting[next])
			return
		}
		w := b.waiting[next]
		b.addUsage(w.namespace, w.amount)
		b.reservations[w.reservation] = true
		b.waiting = slices.Delete(b.waiting, next, next+1)
		b.line.MoveToEnd(w.namespace)
		close(w.granted)
	}
}

// preemptOthers requests the release of amounts until w would fit, largest holder first. An amount that is
// not reduced yet will be released without it.
func (b *FairBudget) preemptOthers(w *waiter) {
	missing := w.amount - b.available
	var others []*FairReservation
	for h := range b.reservations {
		switch {
		case !h.isReduced || isClosed(h.preempted):
			missing -= h.amount
		case h.namespace != w.namespace:
			others = append(others, h)
		}
	}
	slices.SortFunc(others, func(x, y *FairReservation) int {
		return cmp.Or(cmp.Compare(b.usage[y.namespace], b.usage[x.namespace]), cmp.Compare(x.namespace, y.namespace), cmp.Compare(y.amount, x.amount))
	})
	for _, h := range others {
		if missing <= 0 {
			return
		}
		close(h.preempted)
		missing -= h.amount
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ReduceTo releases all but this amount.
func (f *FairReservation) ReduceTo(to int64) {
	f.budget.mu.Lock()
	defer f.budget.mu.Unlock()
	given := max(0, f.amount-to)
	f.amount -= given
	if f.isReduced = true; f.amount == 0 {
		delete(f.budget.reservations, f)
	}
	f.budget.addUsage(f.namespace, -given)
	f.budget.grantWaiting()
}

// Release releases the whole amount.
func (f *FairReservation) Release() { f.ReduceTo(0) }

// FairRateLimit is a rate limit shared by all namespaces.
type FairRateLimit struct {
	budget  *FairBudget
	limiter *rate.Limiter
}

// NewFairRateLimit returns a Rate with a burst of atOnce.
func NewFairRateLimit(perSecond rate.Limit, atOnce int) *FairRateLimit {
	return &FairRateLimit{NewFairBudget(1, 1), rate.NewLimiter(perSecond, atOnce)}
}

// Wait waits until the namespace may proceed once.
func (f *FairRateLimit) Wait(ctx context.Context, namespace string) error {
	hold, err := f.budget.Acquire(ctx, namespace, 1)
	if err != nil {
		return err
	}
	defer hold.Release()
	return f.limiter.Wait(ctx)
}
