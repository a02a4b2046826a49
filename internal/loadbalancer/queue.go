// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/ratelimit"
)

// queue holds the jobs with their next step on one resource.
type queue struct {
	*LoadBalancers
	of    resource
	added chan struct{}
	// spacing is used by the run goroutine only.
	spacing ratelimit.FairLimiter

	mu       sync.Mutex
	waiting  []*job
	cleanups []*cleanupRequest
	// isolateNext is set if the next round serves a namespace that Azure rejected recently.
	isolateNext bool
	// rejectedNamespaces are the namespaces waiting for such a round, in order.
	rejectedNamespaces ratelimit.Rotation
}

func newQueue(b *LoadBalancers, of resource) *queue {
	return &queue{LoadBalancers: b, of: of, added: make(chan struct{}, 1)}
}

func (q *queue) addCleanup(r *cleanupRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cleanups = append(q.cleanups, r)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

func (q *queue) runCleanups(ctx context.Context) {
	q.mu.Lock()
	all := q.cleanups
	q.cleanups = nil
	q.mu.Unlock()
	for _, r := range all {
		err := ctx.Err()
		if l, is := q.of.(*loadBalancer); is && err == nil {
			err = l.runCleanup(ctx, r)
		}
		r.result <- err
	}
}

func (q *queue) addJob(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, j)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// takeBatch returns the jobs of the next round and a function to call after it. It completes jobs that are deferred.
func (q *queue) takeBatch(ctx context.Context, now time.Time) (batch []*job, release func()) {
	q.mu.Lock()
	select {
	case <-q.added: // a stale signal would start a round for a single job
	default:
	}
	deferred := map[*job]error{}
	namespaces := map[string]error{}
	for _, j := range q.waiting {
		if err := q.deferReason(j, namespaces, now); err != nil {
			deferred[j] = err
		}
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(j *job) bool { return deferred[j] != nil })
	batch, release = q.reserveWrites(q.pickJobs(now), now)
	is := map[*job]bool{}
	for _, j := range batch {
		is[j] = true
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(j *job) bool { return is[j] })
	q.mu.Unlock()
	for j, err := range deferred {
		if ctx.Err() == nil {
			q.reportResult(j, err)
		}
	}
	return batch, release
}

// pickJobs returns the oldest jobs, one namespace after another. Recently rejected namespaces are written alone, at
// most every other round, so that others wait for at most one of their writes. The caller holds the lock.
func (q *queue) pickJobs(now time.Time) []*job {
	var clean, suspects []*job
	for _, j := range q.waiting {
		if _, _, suspect := q.rejections.BatchLimit(j.namespace(), now); suspect {
			suspects = append(suspects, j)
		} else {
			clean = append(clean, j)
		}
	}
	if len(suspects) == 0 || len(clean) > 0 && !q.isolateNext {
		q.isolateNext = true
		dealt, _ := ratelimit.SelectFair(clean, (*job).namespace, maxBatch)
		return slices.Clone(dealt)
	}
	q.isolateNext = false
	return q.pickRejected(suspects, now)
}

// pickRejected returns the jobs of the longest-waiting rejected namespace, never-rejected jobs first.
func (q *queue) pickRejected(waiting []*job, now time.Time) []*job {
	namespaces := make([]string, len(waiting))
	for i, j := range waiting {
		namespaces[i] = j.namespace()
	}
	q.rejectedNamespaces.SetNamespaces(namespaces)
	namespace := slices.MinFunc(namespaces, func(a, b string) int {
		return cmp.Compare(q.rejectedNamespaces.OrderOf(a), q.rejectedNamespaces.OrderOf(b))
	})
	q.rejectedNamespaces.MoveToEnd(namespace)
	waiting = slices.DeleteFunc(waiting, func(j *job) bool { return j.namespace() != namespace })
	good := slices.DeleteFunc(slices.Clone(waiting), func(j *job) bool { return q.rejections.IsRejected(j.rejectionKey()) })
	if len(good) > 0 {
		waiting = good
	}
	width, left, _ := q.rejections.BatchLimit(namespace, now)
	var picked []*job
	public := 0
	for _, j := range waiting[:min(len(waiting), max(width, 1), maxBatch)] { // the rejection may just have expired
		if j.canWritePublicIPs() {
			if public++; public > max(left, 1) { // each may be rejected
				continue
			}
		}
		picked = append(picked, j)
	}
	return picked
}

// reserveWrites reserves write budget for a round and defers jobs without budget. Started and leaving jobs are never
// deferred.
func (q *queue) reserveWrites(jobs []*job, now time.Time) (batch []*job, release func()) {
	if q.cfg.Writes == nil || len(jobs) == 0 {
		return jobs, func() {}
	}
	want := map[string]int{}
	for _, j := range jobs {
		if !j.canDefer() {
			continue
		}
		if want[j.namespace()] == 0 {
			want[j.namespace()] = 1 // the shared write
		}
		if j.canWritePublicIPs() {
			want[j.namespace()]++
		}
	}
	subscription, got := q.cfg.Place.SubscriptionID, map[string]int{}
	for namespace, n := range want {
		_, _, suspect := q.rejections.BatchLimit(namespace, now)
		got[namespace] = q.cfg.Writes.ReserveWrites(subscription, namespace, n, suspect, now)
	}
	room := map[string]int{}
	for namespace, n := range got {
		room[namespace] = max(n-1, 1)
	}
	for _, j := range jobs {
		if j.canDefer() && j.canWritePublicIPs() {
			if room[j.namespace()] == 0 {
				continue
			}
			room[j.namespace()]--
		}
		batch = append(batch, j)
	}
	return batch, func() {
		for namespace, n := range got {
			q.cfg.Writes.ReleaseWrites(subscription, namespace, n)
		}
	}
}

func (q *queue) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-q.added:
			_ = ratelimit.Sleep(ctx, batchWindow)
		case <-ctx.Done():
		}
		for q.waitForTurn(ctx) {
			jobs, release := q.takeBatch(ctx, time.Now())
			wanted := namespaceDemand(jobs) // the round hands the jobs on
			if len(jobs) > 0 {
				q.of.runRound(ctx, jobs)
				q.spacing.RecordChanges(wanted, time.Now())
			}
			release()
			if len(jobs) == 0 {
				break
			}
		}
		q.runCleanups(ctx)
	}
}

// waitForTurn waits until a namespace with waiting jobs may start a round and reports whether there is one.
func (q *queue) waitForTurn(ctx context.Context) bool {
	for ctx.Err() == nil {
		q.mu.Lock()
		waiting := namespaceDemand(q.waiting)
		q.mu.Unlock()
		pending, next := len(waiting) > 0, q.spacing.NextRoundAt(waiting)
		if !pending || !next.After(time.Now()) {
			return pending
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-q.added:
			_ = ratelimit.Sleep(ctx, batchWindow)
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

func namespaceDemand(jobs []*job) []ratelimit.SharedChange {
	all := make([]ratelimit.SharedChange, len(jobs))
	for i, j := range jobs {
		all[i] = ratelimit.SharedChange{Namespace: j.namespace(), Object: j.Service, Desired: j.Desired}
	}
	return all
}
