// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
)

// askIfMatch writes with the current and with an outdated etag.
func (r *run) askIfMatch(ctx context.Context) error {
	_, pool, err := r.readBalancer(ctx)
	if err != nil {
		return err
	}
	id, old := r.pool(byAddress, membersPool), text(pool, "etag")
	if old == "" {
		return fmt.Errorf("pool %s shows no etag", membersPool)
	}
	q := write(id, r.poolBody([]member{serving(none), r.spare()}))
	q.IfMatch = old
	w, err := r.put(ctx, poolWrite, q)
	if err != nil {
		return err
	}
	r.note("PUT of a pool with another address, If-Match of its etag", w, "", poolIfMatch)
	if !w.done() {
		r.settle(poolIfMatch, "", "the write with the right etag was not done: "+w.String())
		return nil
	}
	next, err := r.look(ctx, id)
	if err != nil {
		return err
	}
	if text(next, "etag") == old {
		r.settle(poolIfMatch, "", "a write with another address kept the etag, so that none is out of date")
		return nil
	}
	q = write(id, r.poolBody([]member{serving(none), r.spare()}))
	q.IfMatch = old
	if w, err = r.put(ctx, poolWrite, q); err != nil {
		return err
	}
	r.note("PUT of a pool with another address, If-Match of the etag before", w, "", poolIfMatch)
	a, reason := ofGuard(w.Answer)
	r.settle(poolIfMatch, a, reason)
	return nil
}

// askUnchanged reads the etag twice before, to detect changes without a write.
func (r *run) askUnchanged(ctx context.Context) error {
	balancer, _, err := r.readBalancer(ctx)
	if err != nil {
		return err
	}
	rested := text(balancer, "etag")
	var results []look
	for _, target := range []struct {
		at, id, kind string
		body         func(Object) Object
	}{
		{"of a pool", r.pool(byAddress, membersPool), poolWrite, sendableChild},
		{"of a load balancer", r.balancer(byAddress), balancerWrite, sendable},
	} {
		before, err := r.look(ctx, target.id)
		if err != nil {
			return err
		}
		w, err := r.put(ctx, target.kind, write(target.id, target.body(before)))
		if err != nil {
			return err
		}
		if balancer, _, err = r.readBalancer(ctx); err != nil {
			return err
		}
		a, reason := ofEtag(text(before, "etag"), text(balancer, "etag"))
		switch {
		case text(before, "etag") != rested:
			a, reason = "", "the etag changes without a write"
		case !w.done():
			a, reason = "", "the write was not done: "+w.String()
		}
		r.note("PUT "+target.at+" that changes nothing", w, "the etag is "+saw(a, reason), unchangedEtag)
		results, rested = append(results, look{target.at, a, reason}), text(balancer, "etag")
	}
	a, reason := agreed(results)
	r.settle(unchangedEtag, a, reason)
	return nil
}

func (r *run) askIfNoneMatch(ctx context.Context) error {
	balancer, pool, err := r.readBalancer(ctx)
	if err != nil {
		return err
	}
	var results []look
	for _, target := range []struct {
		at, id string
		body   Object
	}{
		{"on a pool", r.pool(byAddress, membersPool), sendableChild(pool)},
		{"on a load balancer", r.balancer(byAddress), sendable(balancer)},
	} {
		q := write(target.id, target.body)
		q.IfNoneMatch = "*"
		w, err := r.put(ctx, "", q)
		if err != nil {
			return err
		}
		r.note("PUT "+target.at+" that is there, If-None-Match *", w, "", ifNoneMatch)
		a, reason := ofGuard(w.Answer)
		results = append(results, look{target.at, a, reason})
	}
	a, reason := agreed(results)
	r.settle(ifNoneMatch, a, reason)
	return nil
}
