// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/turns"
)

const (
	// gathers is how long a resource waits for more Services after the first one, so
	// that those that appear together are written together.
	gathers = 250 * time.Millisecond
	// mostAtOnce bounds the Services of one round: the first of a thousand need not wait for
	// the public IPs of all.
	mostAtOnce = 100
)

// resource is what the next steps of jobs are on: a load balancer, or the security group.
type resource interface {
	// round makes the next step of some jobs.
	round(ctx context.Context, jobs []*job)
}

// queue holds the jobs whose next step is on one resource.
type queue struct {
	of    resource
	added chan struct{}

	mu      sync.Mutex
	waiting []*job
}

func newQueue(of resource) *queue {
	return &queue{of: of, added: make(chan struct{}, 1)}
}

func (q *queue) add(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, j)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// take returns the oldest jobs, of each namespace in turn. Whoever added them has been heard: a
// signal that is left over would have the next Service gather no company.
func (q *queue) take() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.added:
	default:
	}
	var taken []*job
	taken, q.waiting = turns.Deal(q.waiting, (*job).namespace, mostAtOnce)
	return slices.Clone(taken)
}

// run works on what waits until the context is done.
func (q *queue) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-q.added:
			pause(ctx, gathers)
		case <-ctx.Done():
		}
		for jobs := q.take(); len(jobs) > 0 && ctx.Err() == nil; jobs = q.take() {
			q.of.round(ctx, jobs)
		}
	}
}

// pause waits, and reports false if the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
