// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
)

// askIfMatch writes a pool with the current etag, then with the outdated one.
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
	a, why := ofGuard(w.Answer)
	r.settle(poolIfMatch, a, why)
	return nil
}

// askUnchanged writes the current content. It reads the etag twice before, to detect changes
// without a
// write.
func (r *run) askUnchanged(ctx context.Context) error {
	balancer, _, err := r.readBalancer(ctx)
	if err != nil {
		return err
	}
	rested := text(balancer, "etag")
	var looks []look
	for _, of := range []struct {
		at, id, kind string
		body         func(Object) Object
	}{
		{"of a pool", r.pool(byAddress, membersPool), poolWrite, sendableChild},
		{"of a load balancer", r.balancer(byAddress), balancerWrite, sendable},
	} {
		before, err := r.look(ctx, of.id)
		if err != nil {
			return err
		}
		w, err := r.put(ctx, of.kind, write(of.id, of.body(before)))
		if err != nil {
			return err
		}
		if balancer, _, err = r.readBalancer(ctx); err != nil {
			return err
		}
		a, why := ofEtag(text(before, "etag"), text(balancer, "etag"))
		switch {
		case text(before, "etag") != rested:
			a, why = "", "the etag changes without a write"
		case !w.done():
			a, why = "", "the write was not done: "+w.String()
		}
		r.note("PUT "+of.at+" that changes nothing", w, "the etag is "+saw(a, why), unchangedEtag)
		looks, rested = append(looks, look{of.at, a, why}), text(balancer, "etag")
	}
	a, why := agreed(looks)
	r.settle(unchangedEtag, a, why)
	return nil
}

// askIfNoneMatch writes existing resources with If-None-Match.
func (r *run) askIfNoneMatch(ctx context.Context) error {
	balancer, pool, err := r.readBalancer(ctx)
	if err != nil {
		return err
	}
	var looks []look
	for _, of := range []struct {
		at, id string
		body   Object
	}{
		{"on a pool", r.pool(byAddress, membersPool), sendableChild(pool)},
		{"on a load balancer", r.balancer(byAddress), sendable(balancer)},
	} {
		q := write(of.id, of.body)
		q.IfNoneMatch = "*"
		w, err := r.put(ctx, "", q)
		if err != nil {
			return err
		}
		r.note("PUT "+of.at+" that is there, If-None-Match *", w, "", ifNoneMatch)
		a, why := ofGuard(w.Answer)
		looks = append(looks, look{of.at, a, why})
	}
	a, why := agreed(looks)
	r.settle(ifNoneMatch, a, why)
	return nil
}
