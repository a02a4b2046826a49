// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"maps"
	"slices"

	"weir.dev/weir/internal/lb"
)

// planLabels returns the writes of user-provided public IPs for the requests. Those in first release a label and
// must precede the others.
func (r *Round) planLabels(ctx context.Context, requests []*Request) (first, writes map[string]*write) {
	waiting := r.userProvided
	r.userProvided = nil
	r.refreshWaiting(ctx, requests, waiting)
	first, writes = map[string]*write{}, map[string]*write{}
	for _, req := range requests {
		if req.Err != nil || !isWaiting(waiting, req) {
			continue
		}
		r.planLabel(ctx, req, writes)
		if req.Err == nil {
			r.releaseLabel(req, first)
		}
	}
	return first, writes
}

func (r *Round) planLabel(ctx context.Context, req *Request, writes map[string]*write) {
	for _, f := range req.Desired.Frontends {
		if f.PublicIP == nil {
			continue
		}
		want := r.resolveName(*f.PublicIP, req)
		if !isUserProvided(want) {
			continue
		}
		next, changed, _, err := r.chooseAvailable(ctx, want, req)
		switch {
		case err != nil:
			req.Err = err
		case changed:
			r.queueChange(writes, next, req)
		case writes[next.ID.Key()] != nil:
			writes[next.ID.Key()].by = append(writes[next.ID.Key()].by, req)
		}
	}
}

// refreshWaiting reads the waiting public IPs again: the load balancer write may have changed them, and rejected
// requests no longer count.
func (r *Round) refreshWaiting(ctx context.Context, requests []*Request, waiting map[string][]*Request) {
	groups := map[string]lb.ResourceID{}
	for key, by := range waiting {
		if slices.ContainsFunc(by, func(req *Request) bool { return slices.Contains(requests, req) }) {
			g := resourceGroup(r.known[key].ID)
			groups[g.Key()] = g
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if err := r.readGroup(ctx, groups[key]); err != nil {
			for _, req := range requests {
				if isWaiting(waiting, req) {
					req.Err = err
				}
			}
		}
	}
}

func isWaiting(waiting map[string][]*Request, req *Request) bool {
	for _, by := range waiting {
		if slices.Contains(by, req) {
			return true
		}
	}
	return false
}
