// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// budgetUsers hold amounts for a second each and record the order of grants.
type budgetUsers struct {
	*FairBudget

	all   sync.WaitGroup
	mu    sync.Mutex
	order []string
	now   int64
	most  int64
}

func (u *budgetUsers) add(ctx context.Context, namespace string, amount int64) {
	u.all.Go(func() {
		hold, err := u.Acquire(ctx, namespace, amount)
		if err != nil {
			return
		}
		u.mu.Lock()
		u.order = append(u.order, namespace)
		u.now += amount
		u.most = max(u.most, u.now)
		u.mu.Unlock()
		time.Sleep(time.Second)
		u.mu.Lock()
		u.now -= amount
		u.mu.Unlock()
		hold.Release()
	})
	synctest.Wait()
}

func TestNamespacesHaveTheirTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &budgetUsers{FairBudget: NewFairBudget(10, 10)}
		for range 1000 {
			u.add(t.Context(), "many", 10)
		}
		for range 3 {
			u.add(t.Context(), "few", 10)
		}
		u.add(t.Context(), "one", 10)
		u.all.Wait()
		if got := strings.Join(u.order[:9], " "); got != "many many few one many few many few many" || len(u.order) != 1004 || u.most != 10 {
			t.Errorf("%d had a turn, %d at a time, in the order %s …", len(u.order), u.most, got)
		}
	})
}

// Small requests do not pass a large one, and share what remains.
func TestALargeRequestIsNotPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &budgetUsers{FairBudget: NewFairBudget(10, 10)}
		for _, namespace := range []string{"a", "b", "c"} {
			u.add(t.Context(), namespace, 3)
		}
		u.add(t.Context(), "large", 10)
		u.add(t.Context(), "small", 1)
		u.mu.Lock()
		if got := len(u.order); got != 3 {
			t.Errorf("%d are granted at once, want 3", got)
		}
		u.mu.Unlock()
		u.all.Wait()
		if got := strings.Join(u.order, " "); got != "a b c large small" || u.most != 10 {
			t.Errorf("the order is %s, with %d at a time", got, u.most)
		}
	})
}

// A canceled request leaks nothing, and a reduced amount frees its rest for others.
func TestReleasedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &budgetUsers{FairBudget: NewFairBudget(10, 10)}
		ctx, gone := context.WithCancel(t.Context())
		u.add(t.Context(), "first", 10)
		u.add(ctx, "gone", 10)
		u.add(t.Context(), "last", 10)
		gone()
		u.all.Wait()
		if !slices.Equal(u.order, []string{"first", "last"}) || u.available != 10 || len(u.waiting) > 0 {
			t.Errorf("granted %v, %d left, %d wait", u.order, u.available, len(u.waiting))
		}
		for range 100 { // the context ends as it is granted
			ended, end := context.WithCancel(t.Context())
			end()
			if hold, err := u.Acquire(ended, "late", 10); err == nil {
				hold.Release()
			}
		}
		hold, err := u.Acquire(t.Context(), "a", 10)
		if err != nil {
			t.Fatal(err)
		}
		hold.ReduceTo(4)
		other, err := u.Acquire(t.Context(), "b", 6)
		if err != nil {
			t.Fatal(err)
		}
		hold.ReduceTo(8) // an amount never grows
		hold.Release()
		hold.Release()
		other.Release()
		if u.available != 10 {
			t.Errorf("%d are left of 10", u.available)
		}
	})
}

// A namespace is at most one turn behind any other.
func TestARateIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := NewFairRateLimit(10, 5), time.Now()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { _ = r.Wait(t.Context(), "many") })
		}
		synctest.Wait()
		if err := r.Wait(t.Context(), "one"); err != nil || time.Since(began) > 300*time.Millisecond {
			t.Errorf("a neighbor waits for %s, %v", time.Since(began), err)
		}
		wg.Wait()
		if elapsed, want := time.Since(began), 1001*time.Second/10-500*time.Millisecond; (elapsed - want).Abs() > time.Second/10 {
			t.Errorf("1001 at 10 per second, 5 of them at once, took %s, want %s", elapsed, want)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		for range 5 {
			_ = r.limiter.Wait(t.Context())
		}
		if err := r.Wait(ended, "one"); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v", err)
		}
	})
}

// A namespace above its share is skipped until it releases some.
func TestANamespaceHasItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewFairBudget(10, 2)
		first, err := b.Acquire(t.Context(), "many", 5)
		if err != nil {
			t.Fatal(err)
		}
		granted := false
		var wg sync.WaitGroup
		wg.Go(func() {
			if hold, err := b.Acquire(t.Context(), "many", 1); err == nil {
				granted = true
				hold.Release()
			}
		})
		synctest.Wait()
		single, err := b.Acquire(t.Context(), "one", 5)
		if err != nil || granted {
			t.Errorf("a neighbor waits: %v, or one with more than its share does not: %t", err, granted)
		}
		first.ReduceTo(2)
		synctest.Wait()
		if !granted {
			t.Error("what is given back is not granted")
		}
		wg.Wait()
		single.Release()
		first.Release()
		if b.available != 10 || len(b.usage) > 0 {
			t.Errorf("%d are left of 10, held are %v", b.available, b.usage)
		}
	})
}

// Amounts are recalled for another namespace, largest holder first, and no more than needed.
func TestHoldsAreRecalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewFairBudget(96, 8)
		take := func(namespace string, keep int64) *FairReservation {
			hold, err := b.Acquire(t.Context(), namespace, 64)
			if err != nil {
				t.Fatal(err)
			}
			hold.ReduceTo(keep)
			return hold
		}
		small, some, limit := take("small", 2), take("some", 10), take("most", 10)
		more := take("more", 12)
		go func() { _ = take("other", 0) }()
		synctest.Wait()
		if !isClosed(more.PreemptionSignal()) || isClosed(limit.PreemptionSignal()) || isClosed(some.PreemptionSignal()) || isClosed(small.PreemptionSignal()) {
			t.Error("want the hold of the namespace that has most, and no other")
		}
		for _, h := range []*FairReservation{more, limit, some, small} {
			h.Release()
		}
		synctest.Wait()
		if b.available != 96 || len(b.reservations) > 0 {
			t.Errorf("%d are left, %d holds", b.available, len(b.reservations))
		}
	})
}
