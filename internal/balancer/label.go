// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"maps"
	"slices"

	"weir.dev/weir/internal/lb"
)

// label gives the public IPs that people brought the DNS labels that Services ask for: those
// of these jobs alone, whose load balancer has what they want. One that is refused there
// changes nothing of what is not the cluster's.
func (w *worker) label(ctx context.Context, jobs []*job, inv *inventory) {
	ctx, cancel := context.WithTimeout(ctx, ipsDeadline)
	defer cancel()
	brought := inv.brought
	inv.brought = nil
	w.readAgain(ctx, jobs, brought, inv)
	writes, first := map[string]*ipWrite{}, map[string]*ipWrite{}
	for _, j := range jobs {
		if inv.failed[j] != nil || !waitsFor(brought, j) {
			continue
		}
		for _, f := range j.Desired.Frontends {
			if f.PublicIP == nil || !theirs(*f.PublicIP) {
				continue
			}
			next, changed, err := choose(*f.PublicIP, inv.known, j.Service, w.id, w.cfg.Location)
			if err == nil {
				err = w.rests(next)
			}
			switch {
			case err != nil:
				inv.failed[j] = err
			case changed:
				inv.change(writes, next, j)
			case writes[next.ID.Key()] != nil:
				writes[next.ID.Key()].by = append(writes[next.ID.Key()].by, j)
			}
		}
		if inv.failed[j] == nil {
			w.yield(j, inv, first)
		}
	}
	w.putAll(ctx, inv, first)
	w.putAll(ctx, inv, writes)
}

// readAgain reads the public IPs that wait: the write of the load balancer may have changed
// them, and what another job wanted of them counts for nothing if it was refused.
func (w *worker) readAgain(ctx context.Context, jobs []*job, brought map[string][]*job, inv *inventory) {
	groups := map[string]lb.ResourceID{}
	for key, by := range brought {
		if slices.ContainsFunc(by, func(j *job) bool { return slices.Contains(jobs, j) }) {
			g := group(inv.known[key].ID)
			groups[g.Key()] = g
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if err := w.list(ctx, inv, groups[key]); err != nil {
			for _, j := range jobs {
				if waitsFor(brought, j) {
					inv.failed[j] = err
				}
			}
		}
	}
}

func waitsFor(brought map[string][]*job, j *job) bool {
	for _, by := range brought {
		if slices.Contains(by, j) {
			return true
		}
	}
	return false
}
