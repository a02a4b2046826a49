// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fairQueue queues one request per namespace and priority at a time, so that a namespace with a
// thousand requests delays a neighbor by one. Delayed and rate limited requests bypass this.
type fairQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	mu    sync.Mutex
	heads heads
	// worked are in process. A re-added one cannot run until Done, so it bypasses its namespace's
	// turn.
	worked map[reconcile.Request]bool
}

// NewFair creates the queue of a controller; see controller.Options.
func NewFair(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return &fairQueue{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
		worked:        map[reconcile.Request]bool{},
		heads:         heads{at: map[column]reconcile.Request{}, of: map[reconcile.Request][]column{}, behind: map[column][]reconcile.Request{}, waits: map[reconcile.Request]int{}},
	}
}

func (q *fairQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	if o.After > 0 || o.RateLimited {
		q.PriorityQueue.AddWithOpts(o, requests...)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, req := range requests {
		if q.worked[req] || q.heads.stand(req, ptr.Deref(o.Priority, 0)) {
			q.PriorityQueue.AddWithOpts(o, req)
		}
	}
}

func (q *fairQueue) GetWithPriority() (req reconcile.Request, priority int, shutdown bool) {
	req, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if shutdown {
		return req, priority, shutdown
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.worked[req] = true
	for _, next := range q.heads.got(req) {
		q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: &next.priority}, next.Request)
	}
	return req, priority, shutdown
}

func (q *fairQueue) Done(req reconcile.Request) {
	q.mu.Lock()
	delete(q.worked, req)
	q.mu.Unlock()
	q.PriorityQueue.Done(req)
}

func (q *fairQueue) Get() (req reconcile.Request, shutdown bool) {
	req, _, shutdown = q.GetWithPriority()
	return req, shutdown
}

func (q *fairQueue) Add(req reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

type column struct {
	namespace string
	priority  int
}

type heads struct {
	at     map[column]reconcile.Request
	of     map[reconcile.Request][]column
	behind map[column][]reconcile.Request
	// waits maps each request behind a head to its priority. If it was added again with a higher
	// one, its older entry is stale.
	waits map[reconcile.Request]int
}

type next struct {
	reconcile.Request
	priority int
}

// stand reports whether a request is the head of its column.
func (h *heads) stand(req reconcile.Request, priority int) bool {
	if before, waits := h.waits[req]; waits && before >= priority ||
		slices.ContainsFunc(h.of[req], func(c column) bool { return c.priority > priority }) {
		return false
	}
	c := column{req.Namespace, priority}
	if head, busy := h.at[c]; busy && head != req {
		h.waits[req] = priority
		h.behind[c] = append(h.behind[c], req)
		return false
	}
	delete(h.waits, req)
	h.lead(c, req)
	return true
}

func (h *heads) lead(c column, req reconcile.Request) {
	h.at[c] = req
	if !slices.Contains(h.of[req], c) {
		h.of[req] = append(h.of[req], c)
	}
}

// got returns the new heads after a request was dequeued.
func (h *heads) got(req reconcile.Request) []next {
	var all []next
	for _, c := range h.of[req] {
		delete(h.at, c)
		for len(h.behind[c]) > 0 {
			first := h.behind[c][0]
			h.behind[c] = h.behind[c][1:]
			if priority, waits := h.waits[first]; waits && priority == c.priority {
				delete(h.waits, first)
				h.lead(c, first)
				all = append(all, next{first, c.priority})
				break
			}
		}
		if len(h.behind[c]) == 0 {
			delete(h.behind, c)
		}
	}
	delete(h.of, req)
	delete(h.waits, req)
	return all
}
