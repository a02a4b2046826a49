// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func requestIn(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// A neighbor's request waits for at most one other, and changes precede the initial list.
func TestACrowdHoldsANeighboursRequestUpByOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := NewNamespaceQueue("fair-test", DefaultQueueBackoff().NewRateLimiter())
		queue, ok := made.(priorityqueue.PriorityQueue[reconcile.Request])
		if !ok {
			t.Fatal("handlers give no priorities to the queue")
		}
		defer queue.ShutDown()
		low := handler.LowPriority
		for i := range 1500 {
			queue.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, requestIn("crowd", fmt.Sprint("listed-", i)))
		}
		for i := range 1500 {
			queue.Add(requestIn("crowd", fmt.Sprint(i)))
		}
		queue.Add(requestIn("shop", "web"))
		queue.Add(requestIn("crowd", "listed-1499")) // changed since the list
		var order []string
		for range 3001 {
			req, _ := queue.Get()
			order = append(order, req.String())
			queue.Done(req)
		}
		slices.Sort(order[1502:])
		if at := slices.Index(order, "shop/web"); at > 1 {
			t.Errorf("the neighbour is number %d", at+1)
		}
		if at := slices.Index(order, "crowd/listed-1499"); at != 1501 {
			t.Errorf("what was listed and then changed is number %d", at+1)
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(order)))); n != 3001 {
			t.Errorf("%d of 3001 had a turn", n)
		}
	})
}

// A request re-added while in process does not block its namespace.
func TestRunningRequestBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := NewNamespaceQueue("worked-test", DefaultQueueBackoff().NewRateLimiter())
		defer queue.ShutDown()
		slow := requestIn("shop", "slow")
		queue.Add(slow)
		queue.Get()
		queue.Add(slow)
		for i := range 3 {
			queue.Add(requestIn("shop", fmt.Sprint(i)))
		}
		for i := range 3 {
			req, _ := queue.Get()
			if req.Name != fmt.Sprint(i) {
				t.Errorf("%s has the turn of %d", req.Name, i)
			}
			queue.Done(req)
		}
		queue.Done(slow)
		if req, _ := queue.Get(); req != slow {
			t.Errorf("%s has the last turn", req)
		}
	})
}

// Every added request is returned exactly once, unless it is added again after that.
func TestLawFairQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := columnHeads{byColumn: map[column]reconcile.Request{}, byRequest: map[reconcile.Request][]column{}, pending: map[column][]reconcile.Request{}, pendingPriority: map[reconcile.Request]int{}}
		inside, due := map[reconcile.Request]bool{}, map[reconcile.Request]bool{}
		get := func() {
			req := rapid.SampledFrom(slices.SortedFunc(maps.Keys(inside), func(a, b reconcile.Request) int {
				return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
			})).Draw(t, "got")
			delete(inside, req)
			if !due[req] {
				t.Fatalf("%s has a turn twice", req)
			}
			delete(due, req)
			for _, n := range h.removeHead(req) {
				inside[n.Request] = true
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(inside) > 0 && rapid.Bool().Draw(t, "one gets a turn") {
				get()
				continue
			}
			req := requestIn(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "name"))
			due[req] = true
			if h.addRequest(req, rapid.SampledFrom([]int{0, handler.LowPriority}).Draw(t, "priority")) {
				inside[req] = true
			}
			if len(inside) > 4 {
				t.Fatalf("%d are at the head", len(inside))
			}
		}
		for len(inside) > 0 {
			get()
		}
		if len(due) > 0 || len(h.byColumn)+len(h.byRequest)+len(h.pending)+len(h.pendingPriority) > 0 {
			t.Fatalf("left: %v, %+v", due, h)
		}
	})
}
