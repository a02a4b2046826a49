// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// A namespace with hundreds of BackendPools without pools delays another namespace by one of them,
// whether its change comes first, last, or after a long wait of all.
func TestACrowdHoldsANeighbourUpByOneTurn(t *testing.T) {
	for _, after := range []time.Duration{0, 10 * time.Second, 2 * interval} {
		t.Run(after.String(), func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.readTime = 200 * time.Millisecond
				w.pool(web, "")
				var crowd []schedule.Operation
				for i := range 400 {
					id := poolID("kubernetes", fmt.Sprint("missing-", i))
					crowd = append(crowd, schedule.Operation{Ref: schedule.Ref{Namespace: "crowd", Name: id.Name}, Pool: id, ChangedAt: time.Now()})
				}
				w.lanes.Add(crowd...)
				w.wait(after)
				w.change(web, "n1=10.0.0.1")
				w.wait(debounce + 2*w.readTime + w.writeTime)
				w.expectPool(web, "n1=10.0.0.1")
			})
		})
	}
}

// Hundreds of checks do not delay a change of their own namespace.
func TestLooksStandBackBehindAChange(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.readTime = 200 * time.Millisecond
		w.pool(web, "")
		for i := range 400 {
			w.look(poolID("kubernetes", fmt.Sprint("missing-", i)), "")
		}
		w.wait(2 * interval)
		w.change(web, "n1=10.0.0.1")
		w.wait(debounce + 2*w.readTime + w.writeTime)
		w.expectPool(web, "n1=10.0.0.1")
	})
}

// A ready change gets its turn after at most one per other namespace and what ranks first in its
// own, whatever else waits.
func TestLawNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, now := newQueue(0, interval), start
		add := func(namespace string, n int) {
			id := poolID("kubernetes", fmt.Sprint(namespace, "-", n))
			op := schedule.Operation{Ref: schedule.Ref{Namespace: namespace, Name: id.Name}, Pool: id}
			if rapid.Bool().Draw(t, "a change") {
				op.ChangedAt = now
			}
			op.RetryCount = rapid.IntRange(0, 1).Draw(t, "retries")
			q.enqueue(now, op)
		}
		spaces := []string{"a", "b", "c"}
		for i := range rapid.IntRange(0, 40).Draw(t, "others") {
			add(rapid.SampledFrom(spaces).Draw(t, "namespace"), i)
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "pause")) * time.Second)
		}
		own := poolID("kubernetes", "mine")
		q.enqueue(now, schedule.Operation{Ref: schedule.Ref{Namespace: "mine", Name: "mine"}, Pool: own, ChangedAt: now})
		now = now.Add(debounce)
		for turn := range len(spaces) + 1 {
			pick, ok, _ := q.nextPool(now)
			if !ok {
				t.Fatal("nothing is ready")
			}
			if pick == own.Key() {
				return
			}
			q.finishBatch(q.takeBatch(pick, now), nil, schedule.History{}, nil, nil)
			for i := range rapid.IntRange(0, 3).Draw(t, "more") {
				add(rapid.SampledFrom(spaces).Draw(t, "namespace"), 100*turn+100+i)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "took")) * time.Second)
		}
		t.Fatalf("%d turns were not enough", len(spaces)+1)
	})
}

// If there are too many pools, a group takes some of each namespace.
func TestAGroupIsShared(t *testing.T) {
	q, now := newQueue(0, interval), start
	for i := range 1500 {
		id := poolID("kubernetes", fmt.Sprint("crowd-", i))
		q.enqueue(now, schedule.Operation{Ref: schedule.Ref{Namespace: "crowd", Name: id.Name}, Pool: id, ChangedAt: now})
	}
	var own []lb.PoolKey
	for i := range mostTogether / 2 {
		id := poolID("kubernetes", fmt.Sprint("mine-", i))
		own = append(own, id.Key())
		q.enqueue(now, schedule.Operation{Ref: schedule.Ref{Namespace: "mine", Name: id.Name}, Pool: id, ChangedAt: now})
	}
	together := map[lb.PoolKey]bool{}
	for _, key := range q.selectPools(schedule.SelectWrites, now.Add(debounce)) {
		together[key] = true
	}
	for _, key := range own {
		if !together[key] {
			t.Errorf("%s is left out", key)
		}
	}
	if len(together) != mostTogether {
		t.Errorf("%d pools in one group", len(together))
	}
}
