// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/service"
)

const (
	// batchWindow is how long a queue waits for more Services before a round, so that they share a write.
	batchWindow = 250 * time.Millisecond
	// maxBatch limits the Services per round: the first of a thousand must not wait for the public IPs of
	// all.
	maxBatch = 100
)

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
	inBatch := map[*job]bool{}
	for _, j := range batch {
		inBatch[j] = true
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(j *job) bool { return inBatch[j] })
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
	width, rest, _ := q.rejections.BatchLimit(namespace, now)
	var picked []*job
	public := 0
	for _, j := range waiting[:min(len(waiting), max(width, 1), maxBatch)] { // the rejection may just have expired
		if j.canWritePublicIPs() {
			if public++; public > max(rest, 1) { // each may be rejected
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
	capacity := map[string]int{}
	for namespace, n := range got {
		capacity[namespace] = max(n-1, 1)
	}
	for _, j := range jobs {
		if j.canDefer() && j.canWritePublicIPs() {
			if capacity[j.namespace()] == 0 {
				continue
			}
			capacity[j.namespace()]--
		}
		batch = append(batch, j)
	}
	return batch, func() {
		for namespace, n := range got {
			q.cfg.Writes.ReleaseWrites(subscription, namespace, n)
		}
	}
}

func namespaceDemand(jobs []*job) []ratelimit.SharedChange {
	changes := make([]ratelimit.SharedChange, len(jobs))
	for i, j := range jobs {
		changes[i] = ratelimit.SharedChange{Namespace: j.namespace(), Object: j.Service, Desired: j.Desired}
	}
	return changes
}

func (j *job) canWritePublicIPs() bool {
	return j.Desired != nil && !j.started && slices.ContainsFunc(j.Desired.Frontends, func(f service.Frontend) bool { return f.PublicIP != nil })
}

func (j *job) canDefer() bool {
	return !j.started && !j.OnlyRestricts && !j.CloseOnly && j.Desired != nil
}

// deferReason returns why a job must wait. namespaces caches the result per namespace.
func (q *queue) deferReason(j *job, namespaces map[string]error, now time.Time) error {
	if j.started {
		return nil
	}
	if err := q.checkRejections(j.rejectionKey(), j.Desired, j.RetryToken, now); err != nil || !j.canDefer() {
		return err
	}
	err, known := namespaces[j.namespace()]
	if !known {
		err = q.checkWriteBudget(j.namespace(), now)
		namespaces[j.namespace()] = err
	}
	return err
}
