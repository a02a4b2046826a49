// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
)

// checkIfMatch writes with the current and with an outdated etag.
func (r *run) checkIfMatch(ctx context.Context) error {
	_, pool, err := r.readLoadBalancer(ctx)
	if err != nil {
		return err
	}
	id, old := r.poolPath(byAddress, membersPool), stringValue(pool, "etag")
	if old == "" {
		return fmt.Errorf("pool %s shows no etag", membersPool)
	}
	q := newWrite(id, r.poolBody([]member{servingMember(none), r.newMember()}))
	q.IfMatch = old
	w, err := r.writeAndWait(ctx, poolWrite, q)
	if err != nil {
		return err
	}
	r.recordEvent("PUT of a pool with another address, If-Match of its etag", w, "", poolIfMatch)
	if !w.isSucceeded() {
		r.recordResult(poolIfMatch, "", "the write with the right etag was not done: "+w.String())
		return nil
	}
	next, err := r.readResource(ctx, id)
	if err != nil {
		return err
	}
	if stringValue(next, "etag") == old {
		r.recordResult(poolIfMatch, "", "a write with another address kept the etag, so that none is out of date")
		return nil
	}
	q = newWrite(id, r.poolBody([]member{servingMember(none), r.newMember()}))
	q.IfMatch = old
	if w, err = r.writeAndWait(ctx, poolWrite, q); err != nil {
		return err
	}
	r.recordEvent("PUT of a pool with another address, If-Match of the etag before", w, "", poolIfMatch)
	a, reason := guardResult(w.Response)
	r.recordResult(poolIfMatch, a, reason)
	return nil
}

// checkNoChange reads the etag twice before, to detect changes without a write.
func (r *run) checkNoChange(ctx context.Context) error {
	balancer, _, err := r.readLoadBalancer(ctx)
	if err != nil {
		return err
	}
	rested := stringValue(balancer, "etag")
	var results []placedResult
	for _, target := range []struct {
		at, id, kind string
		body         func(Object) Object
	}{
		{"of a pool", r.poolPath(byAddress, membersPool), poolWrite, childWithoutReadOnly},
		{"of a load balancer", r.loadBalancer(byAddress), loadBalancerWrite, withoutReadOnly},
	} {
		before, err := r.readResource(ctx, target.id)
		if err != nil {
			return err
		}
		w, err := r.writeAndWait(ctx, target.kind, newWrite(target.id, target.body(before)))
		if err != nil {
			return err
		}
		if balancer, _, err = r.readLoadBalancer(ctx); err != nil {
			return err
		}
		a, reason := etagResult(stringValue(before, "etag"), stringValue(balancer, "etag"))
		switch {
		case stringValue(before, "etag") != rested:
			a, reason = "", "the etag changes without a write"
		case !w.isSucceeded():
			a, reason = "", "the write was not done: "+w.String()
		}
		r.recordEvent("PUT "+target.at+" that changes nothing", w, "the etag is "+resultOrReason(a, reason), noChangeEtag)
		results, rested = append(results, placedResult{target.at, a, reason}), stringValue(balancer, "etag")
	}
	a, reason := commonResult(results)
	r.recordResult(noChangeEtag, a, reason)
	return nil
}

func (r *run) checkIfNoneMatch(ctx context.Context) error {
	balancer, pool, err := r.readLoadBalancer(ctx)
	if err != nil {
		return err
	}
	var results []placedResult
	for _, target := range []struct {
		at, id string
		body   Object
	}{
		{"on a pool", r.poolPath(byAddress, membersPool), childWithoutReadOnly(pool)},
		{"on a load balancer", r.loadBalancer(byAddress), withoutReadOnly(balancer)},
	} {
		q := newWrite(target.id, target.body)
		q.IfNoneMatch = "*"
		w, err := r.writeAndWait(ctx, "", q)
		if err != nil {
			return err
		}
		r.recordEvent("PUT "+target.at+" that is there, If-None-Match *", w, "", ifNoneMatch)
		a, reason := guardResult(w.Response)
		results = append(results, placedResult{target.at, a, reason})
	}
	a, reason := commonResult(results)
	r.recordResult(ifNoneMatch, a, reason)
	return nil
}
