// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// namespaceQueue queues one request per namespace and priority at a time, so that a namespace with a
// thousand requests delays a neighbor by one. Delayed and rate limited requests bypass this.
type namespaceQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	mu    sync.Mutex
	heads columnHeads
	// processing are in process. A re-added one cannot run until Done, so it bypasses its namespace's
	// turn.
	processing map[reconcile.Request]bool
}

// NewNamespaceQueue creates the queue of a controller; see controller.Options.
func NewNamespaceQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return &namespaceQueue{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
		processing:    map[reconcile.Request]bool{},
		heads:         columnHeads{byColumn: map[column]reconcile.Request{}, byRequest: map[reconcile.Request][]column{}, pending: map[column][]reconcile.Request{}, pendingPriority: map[reconcile.Request]int{}},
	}
}

func (q *namespaceQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	if o.After > 0 || o.RateLimited {
		q.PriorityQueue.AddWithOpts(o, requests...)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, req := range requests {
		if q.processing[req] || q.heads.addRequest(req, ptr.Deref(o.Priority, 0)) {
			q.PriorityQueue.AddWithOpts(o, req)
		}
	}
}

func (q *namespaceQueue) GetWithPriority() (req reconcile.Request, priority int, shutdown bool) {
	req, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if shutdown {
		return req, priority, shutdown
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.processing[req] = true
	for _, next := range q.heads.removeHead(req) {
		q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: &next.priority}, next.Request)
	}
	return req, priority, shutdown
}

func (q *namespaceQueue) Done(req reconcile.Request) {
	q.mu.Lock()
	delete(q.processing, req)
	q.mu.Unlock()
	q.PriorityQueue.Done(req)
}

func (q *namespaceQueue) Get() (req reconcile.Request, shutdown bool) {
	req, _, shutdown = q.GetWithPriority()
	return req, shutdown
}

func (q *namespaceQueue) Add(req reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

type column struct {
	namespace string
	priority  int
}

type columnHeads struct {
	byColumn  map[column]reconcile.Request
	byRequest map[reconcile.Request][]column
	pending   map[column][]reconcile.Request
	// pendingPriority maps each request behind a head to its priority. If it was added again with a higher
	// one, its older entry is stale.
	pendingPriority map[reconcile.Request]int
}

type newHead struct {
	reconcile.Request
	priority int
}

// addRequest reports whether a request is the head of its column.
func (h *columnHeads) addRequest(req reconcile.Request, priority int) bool {
	if before, ok := h.pendingPriority[req]; ok && before >= priority ||
		slices.ContainsFunc(h.byRequest[req], func(c column) bool { return c.priority > priority }) {
		return false
	}
	c := column{req.Namespace, priority}
	if head, busy := h.byColumn[c]; busy && head != req {
		h.pendingPriority[req] = priority
		h.pending[c] = append(h.pending[c], req)
		return false
	}
	delete(h.pendingPriority, req)
	h.setHead(c, req)
	return true
}

func (h *columnHeads) setHead(c column, req reconcile.Request) {
	h.byColumn[c] = req
	if !slices.Contains(h.byRequest[req], c) {
		h.byRequest[req] = append(h.byRequest[req], c)
	}
}

// removeHead returns the new heads after a request was dequeued.
func (h *columnHeads) removeHead(req reconcile.Request) []newHead {
	var heads []newHead
	for _, c := range h.byRequest[req] {
		delete(h.byColumn, c)
		for len(h.pending[c]) > 0 {
			first := h.pending[c][0]
			h.pending[c] = h.pending[c][1:]
			if priority, ok := h.pendingPriority[first]; ok && priority == c.priority {
				delete(h.pendingPriority, first)
				h.setHead(c, first)
				heads = append(heads, newHead{first, c.priority})
				break
			}
		}
		if len(h.pending[c]) == 0 {
			delete(h.pending, c)
		}
	}
	delete(h.byRequest, req)
	delete(h.pendingPriority, req)
	return heads
}
