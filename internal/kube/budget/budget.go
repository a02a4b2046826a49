// SPDX-License-Identifier: Apache-2.0

// Package budget shares a resource fairly among namespaces: a namespace with a thousand requests
// delays a neighbor by one of them.
package budget

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"weir.dev/weir/internal/turns"
)

// Budget is an amount that is taken and released. A request that does not fit blocks all later
// ones, so that small ones cannot starve it. A namespace that holds more than its share is skipped.
// Safe for concurrent use.
type Budget struct {
	share int64

	mu      sync.Mutex
	left    int64
	held    map[string]int64 // by namespace
	holds   map[*Hold]bool
	line    turns.Line
	waiting []*waiter // in order of arrival
}

type waiter struct {
	namespace string
	amount    int64
	granted   chan struct{} // closed when granted
	hold      *Hold
}

// New returns a Budget. A namespace holding more than share gets no more.
func New(total, share int64) *Budget {
	return &Budget{left: total, share: share, held: map[string]int64{}, holds: map[*Hold]bool{}}
}

// Hold is an amount taken from a Budget.
type Hold struct {
	budget    *Budget
	namespace string
	amount    int64 // amount and isShrunk are guarded by the budget's mutex
	isShrunk  bool
	recalled  chan struct{}
}

// Recalled is closed when another namespace waits for what the caller kept after a reduction. The
// caller should release it then.
func (h *Hold) Recalled() <-chan struct{} { return h.recalled }

// Take waits for the amount and the namespace's turn. The caller must release the result, and must
// not wait for another one of this budget before.
func (b *Budget) Take(ctx context.Context, namespace string, amount int64) (*Hold, error) {
	w := &waiter{namespace: namespace, amount: amount, granted: make(chan struct{})}
	w.hold = &Hold{budget: b, namespace: namespace, amount: amount, recalled: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.grant()
	b.mu.Unlock()
	select {
	case <-w.granted:
		return w.hold, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.waiting, w); at >= 0 {
		b.waiting = slices.Delete(b.waiting, at, at+1)
	} else { // granted while the context ended
		b.add(namespace, -amount)
		delete(b.holds, w.hold)
	}
	b.grant()
	return nil, context.Cause(ctx)
}

func (b *Budget) add(namespace string, amount int64) {
	b.left -= amount
	if b.held[namespace] += amount; b.held[namespace] == 0 {
		delete(b.held, namespace)
	}
}

func (b *Budget) grant() {
	for {
		namespaces := make([]string, len(b.waiting))
		for i, w := range b.waiting {
			namespaces[i] = w.namespace
		}
		b.line.Stand(namespaces)
		next := -1
		for i, w := range b.waiting {
			if b.held[w.namespace] <= b.share && (next < 0 || b.line.Turn(w.namespace) < b.line.Turn(b.waiting[next].namespace)) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		if b.waiting[next].amount > b.left {
			b.recall(b.waiting[next])
			return
		}
		w := b.waiting[next]
		b.add(w.namespace, w.amount)
		b.holds[w.hold] = true
		b.waiting = slices.Delete(b.waiting, next, next+1)
		b.line.Took(w.namespace)
		close(w.granted)
	}
}

// recall requests the release of amounts until w would fit, largest holder first. An amount that is
// not reduced yet will be released without it.
func (b *Budget) recall(w *waiter) {
	missing := w.amount - b.left
	var others []*Hold
	for h := range b.holds {
		switch {
		case !h.isShrunk || isClosed(h.recalled):
			missing -= h.amount
		case h.namespace != w.namespace:
			others = append(others, h)
		}
	}
	slices.SortFunc(others, func(x, y *Hold) int {
		return cmp.Or(cmp.Compare(b.held[y.namespace], b.held[x.namespace]), cmp.Compare(x.namespace, y.namespace), cmp.Compare(y.amount, x.amount))
	})
	for _, h := range others {
		if missing <= 0 {
			return
		}
		close(h.recalled)
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

// Shrink releases all but this amount.
func (h *Hold) Shrink(to int64) {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	given := max(0, h.amount-to)
	h.amount -= given
	if h.isShrunk = true; h.amount == 0 {
		delete(h.budget.holds, h)
	}
	h.budget.add(h.namespace, -given)
	h.budget.grant()
}

// Release releases the whole amount.
func (h *Hold) Release() { h.Shrink(0) }

// Rate is a rate limit shared by all namespaces.
type Rate struct {
	turn    *Budget
	limiter *rate.Limiter
}

// NewRate returns a Rate with a burst of atOnce.
func NewRate(perSecond rate.Limit, atOnce int) *Rate {
	return &Rate{New(1, 1), rate.NewLimiter(perSecond, atOnce)}
}

// Wait waits until the namespace may proceed once.
func (r *Rate) Wait(ctx context.Context, namespace string) error {
	hold, err := r.turn.Take(ctx, namespace, 1)
	if err != nil {
		return err
	}
	defer hold.Release()
	return r.limiter.Wait(ctx)
}
