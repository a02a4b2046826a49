// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/ratelimit"
)

// orphanSearchDelay delays the first search after a start, so that Services being deleted are not found.
const orphanSearchDelay = time.Minute

// orphanSearchInterval is the search interval when nothing was found: leftovers usually originate before a start.
// Found ones are checked more often until they are deleted.
const orphanSearchInterval = 24 * time.Hour

// orphanSet tracks Azure resources without a Service. The zero value is ready to use.
type orphanSet struct {
	mu    sync.Mutex
	known map[loadbalancer.Orphan]bool
}

// replaceAll stores the current leftovers and returns the new ones.
func (o *orphanSet) replaceAll(orphans []loadbalancer.Orphan) (added []loadbalancer.Orphan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := map[loadbalancer.Orphan]bool{}
	for _, orphan := range orphans {
		if next[orphan] = true; !o.known[orphan] {
			added = append(added, orphan)
		}
	}
	o.known = next
	return added
}

// CountOrphans returns the number of resources named after a Service that does not exist.
func (r *Reconciler) CountOrphans() int {
	r.orphans.mu.Lock()
	defer r.orphans.mu.Unlock()
	return len(r.orphans.known)
}

// RunOrphanSearch searches until the context is done for resources of Services that lost their finalizer
// while no process was watching, and logs each once. It also deletes resources that Services left to others
// and that are no longer needed.
func (r *Reconciler) RunOrphanSearch(ctx context.Context) {
	var next time.Time
	for wait := orphanSearchDelay; ratelimit.Sleep(ctx, wait) == nil; wait = cmp.Or(r.options.ResyncPeriod, orphanSearchDelay) {
		if r.gateways != nil && !r.gateways.IsLoaded() { // what seems to be left may be a Gateway's
			continue
		}
		if now := time.Now(); !now.Before(next) {
			next = now
			if r.findOrphans(ctx) {
				next = now.Add(orphanSearchInterval)
			}
		}
		if err := r.cleanUpUnneeded(ctx); err != nil {
			r.cfg.Log.WarnContext(ctx, "what nothing needs any more in Azure is not deleted yet", "err", err)
		}
		if r.options.ResyncPeriod <= 0 {
			return
		}
	}
}

// findOrphans reports whether there are none.
func (r *Reconciler) findOrphans(ctx context.Context) (none bool) {
	orphans, err := r.deployer.ListOrphans(ctx)
	if err != nil {
		r.cfg.Log.DebugContext(ctx, "leftovers of Services cannot be looked for", "err", err)
		return false
	}
	for _, orphan := range r.orphans.replaceAll(orphans) {
		r.cfg.Log.WarnContext(ctx, "named as a Service's, and this cluster has no such Service: delete it by hand, unless another cluster of the same name has it",
			"what", orphan.Description, "madeFor", orphan.Service)
	}
	return len(orphans) == 0
}

// cleanUpUnneeded deletes resources left to others, and the BackendPools of load balancers that do not exist.
func (r *Reconciler) cleanUpUnneeded(ctx context.Context) error {
	d, err := r.deployer.CleanUp(ctx)
	failed := []error{err}
	for _, id := range d.Missing {
		failed = append(failed, serviceStatusStore{r}.DropNodePools(ctx, id))
	}
	if len(d.DrainingPools) > 0 {
		failed = append(failed, serviceStatusStore{r}.DrainPools(ctx, d.DrainingPools))
	}
	return errors.Join(failed...)
}
