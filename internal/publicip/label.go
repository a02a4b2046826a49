// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"maps"
	"slices"

	"weir.dev/weir/internal/lb"
)

// labels returns the writes of user-provided public IPs for the requests. Those in first release a label and
// must precede the others.
func (r *Round) labels(ctx context.Context, requests []*Request) (first, writes map[string]*write) {
	brought := r.brought
	r.brought = nil
	r.readAgain(ctx, requests, brought)
	first, writes = map[string]*write{}, map[string]*write{}
	for _, req := range requests {
		if req.Err != nil || !waits(brought, req) {
			continue
		}
		r.label(req, writes)
		if req.Err == nil {
			r.releaseLabel(req, first)
		}
	}
	return first, writes
}

func (r *Round) label(req *Request, writes map[string]*write) {
	for _, f := range req.Desired.Frontends {
		if f.PublicIP == nil {
			continue
		}
		want := r.resolve(*f.PublicIP, req)
		if !theirs(want) {
			continue
		}
		next, changed, _, err := r.choose(want, req)
		switch {
		case err != nil:
			req.Err = err
		case changed:
			r.change(writes, next, req)
		case writes[next.ID.Key()] != nil:
			writes[next.ID.Key()].by = append(writes[next.ID.Key()].by, req)
		}
	}
}

// readAgain reads the waiting public IPs again: the load balancer write may have changed them, and rejected
// requests no longer count.
func (r *Round) readAgain(ctx context.Context, requests []*Request, brought map[string][]*Request) {
	groups := map[string]lb.ResourceID{}
	for key, by := range brought {
		if slices.ContainsFunc(by, func(req *Request) bool { return slices.Contains(requests, req) }) {
			g := group(r.known[key].ID)
			groups[g.Key()] = g
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if err := r.read(ctx, groups[key]); err != nil {
			for _, req := range requests {
				if waits(brought, req) {
					req.Err = err
				}
			}
		}
	}
}

func waits(brought map[string][]*Request, req *Request) bool {
	for _, by := range brought {
		if slices.Contains(by, req) {
			return true
		}
	}
	return false
}
