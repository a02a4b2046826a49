// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"sync"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/sleep"
)

// leftoversAfter delays the first search after a start, so that Services being deleted are not found.
const leftoversAfter = time.Minute

// leftoversAgain is the search interval when nothing was found: leftovers usually originate before a start.
// Found ones are checked more often until they are deleted.
const leftoversAgain = 24 * time.Hour

// leftovers tracks Azure resources without a Service. The zero value is ready to use.
type leftovers struct {
	mu    sync.Mutex
	known map[balancer.Leftover]bool
}

// replace stores the current leftovers and returns the new ones.
func (l *leftovers) replace(all []balancer.Leftover) (news []balancer.Leftover) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[balancer.Leftover]bool{}
	for _, left := range all {
		if next[left] = true; !l.known[left] {
			news = append(news, left)
		}
	}
	l.known = next
	return news
}

// Leftovers returns the number of resources named after a Service that does not exist.
func (r *Reconciler) Leftovers() int {
	r.left.mu.Lock()
	defer r.left.mu.Unlock()
	return len(r.left.known)
}

// FindLeftovers searches until the context is done for resources of Services that lost their finalizer
// while no process was watching, and logs each once. It also deletes resources that Services left to others
// and that are no longer needed.
func (r *Reconciler) FindLeftovers(ctx context.Context) {
	var next time.Time
	for wait := leftoversAfter; sleep.For(ctx, wait) == nil; wait = r.options.LookAgainAfter {
		if now := time.Now(); !now.Before(next) {
			next = now
			if r.findLeftovers(ctx) {
				next = now.Add(leftoversAgain)
			}
		}
		if err := r.deleteUnneeded(ctx); err != nil {
			r.cfg.Log.WarnContext(ctx, "what nothing needs any more in Azure is not deleted yet", "err", err)
		}
		if r.options.LookAgainAfter <= 0 {
			return
		}
	}
}

// findLeftovers reports whether there are none.
func (r *Reconciler) findLeftovers(ctx context.Context) (none bool) {
	all, err := r.balancers.Leftovers(ctx)
	if err != nil {
		r.cfg.Log.DebugContext(ctx, "leftovers of Services cannot be looked for", "err", err)
		return false
	}
	for _, left := range r.left.replace(all) {
		r.cfg.Log.WarnContext(ctx, "named as a Service's, and this cluster has no such Service: delete it by hand, unless another cluster of the same name has it",
			"what", left.What, "madeFor", left.Service)
	}
	return len(all) == 0
}

// deleteUnneeded deletes resources left to others, and the BackendPools of load balancers that do not exist.
func (r *Reconciler) deleteUnneeded(ctx context.Context) error {
	d, err := r.balancers.DeleteUnneeded(ctx)
	failed := []error{err}
	for _, id := range d.Gone {
		failed = append(failed, serviceLedger{r}.DropNodePools(ctx, id))
	}
	if len(d.Emptying) > 0 {
		failed = append(failed, serviceLedger{r}.EmptyPools(ctx, d.Emptying))
	}
	return errors.Join(failed...)
}
