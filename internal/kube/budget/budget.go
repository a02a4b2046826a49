// SPDX-License-Identifier: Apache-2.0

// Package budget shares an amount, such as bytes of memory or writes per second, among namespaces in turns: a namespace
// with a thousand requests delays a neighbor by one of them.
package budget

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"weir.dev/weir/internal/turns"
)

// Budget is an amount that is taken and given back. A request that does not fit makes all later ones wait, so that a
// large one is not passed by small ones for ever. A namespace that holds more than its share is passed.
type Budget struct {
	share int64

	mu      sync.Mutex
	left    int64
	held    map[string]int64 // by namespace
	line    turns.Line
	waiting []*waiter // in the order of arrival
}

type waiter struct {
	namespace string
	amount    int64
	granted   chan struct{} // closed once it holds the amount
}

// New returns a Budget of this amount. A namespace gets no more of it while it holds more than share.
func New(total, share int64) *Budget {
	return &Budget{left: total, share: share, held: map[string]int64{}}
}

// Hold is an amount that was taken.
type Hold struct {
	budget    *Budget
	namespace string

	mu     sync.Mutex
	amount int64
}

// Take waits until the amount is left and it is the namespace's turn. An amount larger than the whole budget waits until the
// context ends. The caller has to release what it holds, and to take nothing else of this budget before.
func (b *Budget) Take(ctx context.Context, namespace string, amount int64) (*Hold, error) {
	w := &waiter{namespace, amount, make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.grant()
	b.mu.Unlock()
	select {
	case <-w.granted:
		return &Hold{budget: b, namespace: namespace, amount: amount}, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.waiting, w); at >= 0 {
		b.waiting = slices.Delete(b.waiting, at, at+1)
	} else { // it was granted as the context ended
		b.add(namespace, -amount)
	}
	b.grant()
	return nil, context.Cause(ctx)
}

// add changes what a namespace holds.
func (b *Budget) add(namespace string, amount int64) {
	b.left -= amount
	if b.held[namespace] += amount; b.held[namespace] == 0 {
		delete(b.held, namespace)
	}
}

// grant gives waiters in the order of their turns what they wait for, up to the first that does not fit.
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
		if next < 0 || b.waiting[next].amount > b.left {
			return
		}
		w := b.waiting[next]
		b.add(w.namespace, w.amount)
		b.waiting = slices.Delete(b.waiting, next, next+1)
		b.line.Took(w.namespace)
		close(w.granted)
	}
}

// Shrink gives back all but this amount.
func (h *Hold) Shrink(to int64) {
	h.mu.Lock()
	given := max(0, h.amount-to)
	h.amount -= given
	h.mu.Unlock()
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.budget.add(h.namespace, -given)
	h.budget.grant()
}

// Release gives back what is left of it.
func (h *Hold) Release() { h.Shrink(0) }

// Rate is how often something is done, for all namespaces together.
type Rate struct {
	turn    *Budget
	limiter *rate.Limiter
}

// NewRate returns a Rate of so many per second, and of so many at once after a pause.
func NewRate(perSecond rate.Limit, atOnce int) *Rate {
	return &Rate{New(1, 1), rate.NewLimiter(perSecond, atOnce)}
}

// Wait waits until the namespace may do it once.
func (r *Rate) Wait(ctx context.Context, namespace string) error {
	hold, err := r.turn.Take(ctx, namespace, 1)
	if err != nil {
		return err
	}
	defer hold.Release()
	return r.limiter.Wait(ctx)
}
