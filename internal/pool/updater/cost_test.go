// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// inLevelLane sets up a load balancer with that many pools in sync. change changes one of them and
// waits for the write. Writes do not overlap.
func inSyncLane(t *testing.T, pools int, explanation func(change func(i int))) {
	inWholeWorldOf(t, pools, func(*Config) {}, func(w *whole, ids []lb.PoolID) {
		w.writeTime = time.Millisecond
		for _, id := range ids {
			w.pool(id, "n=10.0.0.1")
			w.look(id, "n=10.0.0.1")
		}
		w.wait(time.Hour)
		explanation(func(i int) {
			w.reports, w.calls, w.waits = w.reports[:0], w.calls[:0], w.waits[:0]
			w.change(ids[i%pools], fmt.Sprintf("n=10.0.1.%d", i%200))
			w.wait(time.Minute)
			if len(w.reports) != 1 || !w.reports[0].InSync {
				w.t.Fatalf("%d reports, calls %q", len(w.reports), w.calls)
			}
		})
	})
}

// A change of one pool costs nothing for the others on its load balancer. It once took a hundred
// times as long.
func TestAChangeCostsTheSameInALargeLane(t *testing.T) {
	if small, large := asksAbout(t, 20), asksAbout(t, 2000); large > 10*small {
		t.Errorf("with 2,000 pools %s, with 20 pools %s", large, small)
	}
}

// asksAbout returns how long a worker with that many pools in sync takes to decide about a group
// when one has changed.
func asksAbout(t *testing.T, pools int) time.Duration {
	ls := New(Config{LoadBalancers: &whole{}, Pipeline: &piped{}, Log: slog.New(slog.DiscardHandler)})
	l := ls.getWorker(poolID("kubernetes", "").LoadBalancer)
	now := time.Now()
	for i := range pools {
		id := poolID("kubernetes", fmt.Sprint("web-", i))
		l.queue.enqueue(now, schedule.Operation{Ref: schedule.Ref{Name: id.Name}, Pool: id, ChangedAt: now})
		if i > 0 {
			update := l.queue.takeBatch(id.Key(), now)
			l.queue.finishBatch(update, nil, update.history, new(uint64), nil)
		}
	}
	now = now.Add(time.Second)
	best := time.Hour
	for range 5 {
		begun := time.Now()
		for range 100 {
			if _, due := l.selectGroups(now); len(due) > 1 {
				t.Fatalf("%q are written together", due)
			}
		}
		best = min(best, time.Since(begun))
	}
	return best
}

func BenchmarkAChange(b *testing.B) {
	for _, pools := range []int{20, 200, 2000} {
		b.Run(fmt.Sprint(pools, " pools"), func(b *testing.B) {
			inSyncLane(new(testing.T), pools, func(change func(int)) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					change(i)
				}
			})
		})
	}
}

// The memory for a pool in sync is bounded, including its name.
func TestMemoryOfAPoolInSync(t *testing.T) {
	const pools, most = 1000, 1200
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	q, now := newQueue(time.Minute, interval), time.Now()
	before := inUse()
	for i := range pools {
		id := poolID("kubernetes", fmt.Sprint("web-", i))
		service := schedule.ServiceName{Name: id.Name}
		q.enqueue(now, schedule.Operation{Ref: schedule.Ref{Name: id.Name}, Pool: id, Service: service, ChangedAt: now})
		q.behindWait(id.Key()) // reports that it waits
		update := q.takeBatch(id.Key(), now)
		q.finishBatch(update, nil, update.history, new(uint64), map[schedule.Notification][]schedule.ServiceName{schedule.NotifyUpdated: {service}})
	}
	each := (inUse() - before) / pools
	if t.Logf("%d bytes", each); each > most || len(q.pools) != pools {
		t.Errorf("%d bytes are kept of each of %d pools, want %d at most", each, len(q.pools), most)
	}
}
