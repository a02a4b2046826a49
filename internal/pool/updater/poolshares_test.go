// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// shopAndBlog returns a worker of which namespace shop has used up its share, and the write budgets
// of its subscription.
func shopAndBlog() (l *worker, writes *ratelimit.Budgets, change func(namespace, pool string) schedule.Operation) {
	writes = ratelimit.New(0.5, interval)
	l = newWorker(web.LoadBalancer, &Config{Writes: writes, Interval: interval})
	for range 400 {
		writes.CountWrite(web.LoadBalancer.SubscriptionID, time.Now())
		writes.CountPoolWrite(web.LoadBalancer.SubscriptionID, time.Now(), "shop")
	}
	return l, writes, func(namespace, pool string) schedule.Operation {
		writes.RecordNamespace(web.LoadBalancer.SubscriptionID, namespace, time.Now())
		return schedule.Operation{
			Ref:  schedule.Ref{Namespace: namespace, Name: pool},
			Pool: lb.PoolID{LoadBalancer: web.LoadBalancer, Name: pool}, ChangedAt: time.Now(),
		}
	}
}

// Beyond its share a namespace waits, and its pools report until when and why. Other namespaces,
// deleted nodes and admin states do not wait. Once writes leave the window, changes are written in
// the order in which they came.
func TestPoolsBeyondTheShareOfTheirNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, change := shopAndBlog()
		blog := change("blog", "b")
		for n := range 3 {
			l.queue.enqueue(time.Now(), change("shop", fmt.Sprint("s", n)))
			time.Sleep(time.Second)
		}
		if pool, ok, askAt := l.queue.nextPool(time.Now()); ok || !askAt.Equal(time.Now().Add(pacePollInterval)) {
			t.Fatalf("%s is attempted; asks at %s", pool, askAt)
		}
		waits := l.queue.changedWaits(blocker{}, time.Now())
		if len(waits) != 3 {
			t.Fatalf("%d waits are reported: %+v", len(waits), waits)
		}
		for _, w := range waits {
			if wait := time.Until(w.Until); w.Cause != CauseShare || wait < time.Minute || wait > 6*time.Minute || !strings.Contains(w.Message, ": it used 400 of its 400 writes") {
				t.Errorf("%+v", w)
			}
		}
		if second := l.queue.changedWaits(blocker{}, time.Now()); len(second) > 0 {
			t.Errorf("reported again: %+v", second)
		}
		admin, gone := change("shop", "s1"), change("shop", "s2")
		admin.Admin, gone.Exempt = true, true
		next := func(want string) {
			t.Helper()
			time.Sleep(time.Second)
			pool, ok, _ := l.queue.nextPool(time.Now())
			if !ok || pool != change("", want).Pool.Key() {
				t.Errorf("next is %q, want %s", pool, want)
				return
			}
			taken := l.queue.takeBatch(pool, time.Now())
			l.queue.finishBatch(taken, nil, taken.history, nil, nil)
		}
		l.queue.enqueue(time.Now(), blog)
		next("b")
		l.queue.enqueue(time.Now(), gone)
		next("s2")
		l.queue.enqueue(time.Now(), change("shop", "s3"))
		time.Sleep(5*time.Minute + 5*time.Second)
		next("s0")
		next("s1")
		next("s3")
		l.queue.enqueue(time.Now(), admin)
		next("s1")
	})
}

// If there is room for some changes of a namespace, the oldest get it.
func TestTheOldestChangeHasTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, change := shopAndBlog()
		l.queue.deferChanges = func(_ string, due int, now time.Time) (deferrals []ratelimit.Deferral) {
			for range due - 1 {
				deferrals = append(deferrals, ratelimit.Deferral{Until: now.Add(time.Minute)})
			}
			return deferrals
		}
		for _, pool := range []string{"c", "b", "a"} {
			l.queue.enqueue(time.Now(), change("shop", pool))
			time.Sleep(time.Second)
		}
		if pool, _, _ := l.queue.nextPool(time.Now()); pool != change("", "c").Pool.Key() {
			t.Errorf("%s has the room", pool)
		}
	})
}
