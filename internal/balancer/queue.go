// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/sleep"
	"weir.dev/weir/internal/turns"
)

// queue holds the jobs with their next step on one resource.
type queue struct {
	*Balancers
	of    resource
	added chan struct{}
	// spacing is used by the run goroutine only.
	spacing turns.Spacing

	mu       sync.Mutex
	waiting  []*job
	removals []*removal
	// apart is set if the next round serves a namespace that Azure rejected recently.
	apart bool
	// suspects are the namespaces waiting for such a round, in order.
	suspects turns.Line
}

func newQueue(b *Balancers, of resource) *queue {
	return &queue{Balancers: b, of: of, added: make(chan struct{}, 1)}
}

func (q *queue) remove(r *removal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removals = append(q.removals, r)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

func (q *queue) endRemovals(ctx context.Context) {
	q.mu.Lock()
	all := q.removals
	q.removals = nil
	q.mu.Unlock()
	for _, r := range all {
		err := ctx.Err()
		if l, is := q.of.(*loadBalancer); is && err == nil {
			err = l.remove(ctx, r)
		}
		r.ended <- err
	}
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

// take returns the jobs of the next round and a function to call after it. It completes jobs that are deferred.
func (q *queue) take(ctx context.Context, now time.Time) (batch []*job, release func()) {
	q.mu.Lock()
	select {
	case <-q.added: // a stale signal would start a round for a single job
	default:
	}
	deferred := map[*job]error{}
	namespaces := map[string]error{}
	for _, j := range q.waiting {
		if err := q.deferral(j, namespaces, now); err != nil {
			deferred[j] = err
		}
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(j *job) bool { return deferred[j] != nil })
	batch, release = q.reserve(q.pick(now), now)
	is := map[*job]bool{}
	for _, j := range batch {
		is[j] = true
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(j *job) bool { return is[j] })
	q.mu.Unlock()
	for j, err := range deferred {
		if ctx.Err() == nil {
			q.done(j, err)
		}
	}
	return batch, release
}

// pick returns the oldest jobs, one namespace after another. Recently rejected namespaces are written alone, at
// most every other round, so that others wait for at most one of their writes. The caller holds the lock.
func (q *queue) pick(now time.Time) []*job {
	var clean, suspects []*job
	for _, j := range q.waiting {
		if _, _, suspect := q.rejections.Suspect(j.namespace(), now); suspect {
			suspects = append(suspects, j)
		} else {
			clean = append(clean, j)
		}
	}
	if len(suspects) == 0 || len(clean) > 0 && !q.apart {
		q.apart = true
		dealt, _ := turns.Deal(clean, (*job).namespace, mostAtOnce)
		return slices.Clone(dealt)
	}
	q.apart = false
	return q.pickSuspects(suspects, now)
}

// pickSuspects returns the jobs of the longest-waiting rejected namespace, never-rejected jobs first.
func (q *queue) pickSuspects(waiting []*job, now time.Time) []*job {
	namespaces := make([]string, len(waiting))
	for i, j := range waiting {
		namespaces[i] = j.namespace()
	}
	q.suspects.Stand(namespaces)
	namespace := slices.MinFunc(namespaces, func(a, b string) int { return cmp.Compare(q.suspects.Turn(a), q.suspects.Turn(b)) })
	q.suspects.Took(namespace)
	waiting = slices.DeleteFunc(waiting, func(j *job) bool { return j.namespace() != namespace })
	good := slices.DeleteFunc(slices.Clone(waiting), func(j *job) bool { return q.rejections.Rejected(j.wish()) })
	if len(good) > 0 {
		waiting = good
	}
	width, left, _ := q.rejections.Suspect(namespace, now)
	var picked []*job
	public := 0
	for _, j := range waiting[:min(len(waiting), max(width, 1), mostAtOnce)] { // the rejection may just have expired
		if j.makesPublicIPs() {
			if public++; public > max(left, 1) { // each may be rejected
				continue
			}
		}
		picked = append(picked, j)
	}
	return picked
}

// reserve reserves write budget for a round and defers jobs without budget. Started and leaving jobs are never
// deferred.
func (q *queue) reserve(jobs []*job, now time.Time) (batch []*job, release func()) {
	if q.cfg.Writes == nil || len(jobs) == 0 {
		return jobs, func() {}
	}
	want := map[string]int{}
	for _, j := range jobs {
		if !j.deferrable() {
			continue
		}
		if want[j.namespace()] == 0 {
			want[j.namespace()] = 1 // the shared write
		}
		if j.makesPublicIPs() {
			want[j.namespace()]++
		}
	}
	subscription, got := q.cfg.Place.SubscriptionID, map[string]int{}
	for namespace, n := range want {
		_, _, suspect := q.rejections.Suspect(namespace, now)
		got[namespace] = q.cfg.Writes.Reserve(subscription, namespace, n, suspect, now)
	}
	room := map[string]int{}
	for namespace, n := range got {
		room[namespace] = max(n-1, 1)
	}
	for _, j := range jobs {
		if j.deferrable() && j.makesPublicIPs() {
			if room[j.namespace()] == 0 {
				continue
			}
			room[j.namespace()]--
		}
		batch = append(batch, j)
	}
	return batch, func() {
		for namespace, n := range got {
			q.cfg.Writes.Release(subscription, namespace, n)
		}
	}
}

func (q *queue) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-q.added:
			_ = sleep.For(ctx, gathers)
		case <-ctx.Done():
		}
		for q.pause(ctx) {
			jobs, release := q.take(ctx, time.Now())
			wanted := changes(jobs) // the round hands the jobs on
			if len(jobs) > 0 {
				q.of.round(ctx, jobs)
				q.spacing.Add(wanted, time.Now())
			}
			release()
			if len(jobs) == 0 {
				break
			}
		}
		q.endRemovals(ctx)
	}
}

// pause waits until a namespace with waiting jobs may start a round and reports whether there is one.
func (q *queue) pause(ctx context.Context) bool {
	for ctx.Err() == nil {
		q.mu.Lock()
		waiting := changes(q.waiting)
		q.mu.Unlock()
		pending, next := len(waiting) > 0, q.spacing.NextAt(waiting)
		if !pending || !next.After(time.Now()) {
			return pending
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-q.added:
			_ = sleep.For(ctx, gathers)
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

func changes(jobs []*job) []turns.Change {
	all := make([]turns.Change, len(jobs))
	for i, j := range jobs {
		all[i] = turns.Change{Namespace: j.namespace(), Object: j.Service, Wants: j.Desired}
	}
	return all
}
