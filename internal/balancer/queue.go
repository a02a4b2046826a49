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
	// spacing belongs to the goroutine that runs.
	spacing turns.Spacing

	mu      sync.Mutex
	waiting []*job
	// removals wait for the end of a round.
	removals []*removal
	// apart is true if the next round is for a namespace that Azure has rejected Services of lately.
	apart bool
	// suspects are the namespaces that wait for such a round, in the order of their turns.
	suspects turns.Line
}

func newQueue(b *Balancers, of resource) *queue {
	return &queue{Balancers: b, of: of, added: make(chan struct{}, 1)}
}

// remove has what nothing needs any more deleted from the load balancer.
func (q *queue) remove(r *removal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removals = append(q.removals, r)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// endRemovals carries out the removals that wait.
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

// take returns the jobs of the next round, and a function to call after it. It ends those that have to wait.
func (q *queue) take(ctx context.Context, now time.Time) (taken []*job, release func()) {
	q.mu.Lock()
	select {
	case <-q.added: // a signal that is left over would start a round for one job alone
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
	taken, release = q.reserve(q.pick(now), now)
	is := map[*job]bool{}
	for _, j := range taken {
		is[j] = true
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(j *job) bool { return is[j] })
	q.mu.Unlock()
	for j, err := range deferred {
		if ctx.Err() == nil {
			q.done(j, err)
		}
	}
	return taken, release
}

// pick returns the oldest jobs, of each namespace in turn. Those of a namespace that Azure has rejected Services of
// lately are written by themselves, in every other round at most, so that no other namespace waits for more than one
// of their writes. The caller holds the lock.
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

// pickSuspects returns jobs of the namespace that has waited longest: those that Azure has never rejected first.
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
	for _, j := range waiting[:min(len(waiting), max(width, 1), mostAtOnce)] { // what was rejected may just have been forgotten
		if j.makesPublicIPs() {
			if public++; public > max(left, 1) { // each may be rejected
				continue
			}
		}
		picked = append(picked, j)
	}
	return picked
}

// reserve reserves the writes of a round, and leaves out the jobs for which there is no room. Jobs that have begun
// are never left out, nor are those that leave.
func (q *queue) reserve(jobs []*job, now time.Time) (taken []*job, release func()) {
	if q.cfg.Writes == nil || len(jobs) == 0 {
		return jobs, func() {}
	}
	want := map[string]int{}
	for _, j := range jobs {
		if !j.deferrable() {
			continue
		}
		if want[j.namespace()] == 0 {
			want[j.namespace()] = 1 // the write that they share
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
		taken = append(taken, j)
	}
	return taken, func() {
		for namespace, n := range got {
			q.cfg.Writes.Release(subscription, namespace, n)
		}
	}
}

// run works on what waits until the context is done.
func (q *queue) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-q.added:
			_ = sleep.For(ctx, gathers)
		case <-ctx.Done():
		}
		for q.pause(ctx) {
			jobs, release := q.take(ctx, time.Now())
			wanted := changes(jobs) // after the round the jobs belong to others
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

// pause waits until a namespace with a waiting job may cause a round, and reports whether there is one.
func (q *queue) pause(ctx context.Context) bool {
	for ctx.Err() == nil {
		q.mu.Lock()
		waiting := changes(q.waiting)
		q.mu.Unlock()
		waits, next := len(waiting) > 0, q.spacing.NextAt(waiting)
		if !waits || !next.After(time.Now()) {
			return waits
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

// changes are what the jobs' namespaces want.
func changes(jobs []*job) []turns.Change {
	all := make([]turns.Change, len(jobs))
	for i, j := range jobs {
		all[i] = turns.Change{Namespace: j.namespace(), Object: j.Service, Wants: j.Desired}
	}
	return all
}
