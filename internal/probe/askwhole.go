// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
)

func (r *run) askWholeAddresses(ctx context.Context) error {
	balancer, pool, err := r.readBalancer(ctx)
	if err != nil {
		return err
	}
	before, sent := members(pool), []member{serving(none), r.spare()}
	w, err := r.put(ctx, balancerWrite, write(r.balancer(byAddress), sendable(withPool(balancer, membersPool, withMembers(pool, sent)))))
	if err != nil {
		return err
	}
	_, pool, err = r.readBalancer(ctx)
	if err != nil {
		return err
	}
	after := members(pool)
	r.note("PUT of a load balancer with another address", w,
		fmt.Sprintf("before %s, sent %s, then %s", shownMembers(before), shownMembers(sent), shownMembers(after)), wholeAddresses)
	if !w.done() {
		r.settle(wholeAddresses, "", "the write was not done: "+w.String())
		return nil
	}
	a, reason := ofAddresses(before, sent, after)
	r.settle(wholeAddresses, a, reason)
	return nil
}

// askWholeStates first sets an address Down by a pool PUT, as the baseline.
func (r *run) askWholeStates(ctx context.Context) error {
	baseline, err := r.put(ctx, poolWrite, write(r.pool(byAddress, membersPool), r.poolBody([]member{serving(down), r.spare()})))
	if err != nil {
		return err
	}
	balancer, pool, err := r.readBalancer(ctx)
	if err != nil {
		return err
	}
	before := members(pool)
	r.note("PUT of a pool with adminState Down", baseline, "then it is "+stateOf(before, servingIP), wholeStates)
	if stateOf(before, servingIP) != down {
		r.settle(wholeStates, "", "the pool's own write did not set the address Down: "+baseline.String())
		return nil
	}
	up := make([]member, len(before))
	for i, m := range before {
		up[i] = member{m.name, m.ip, none}
	}
	w, err := r.put(ctx, balancerWrite, write(r.balancer(byAddress), sendable(withPool(balancer, membersPool, withMembers(pool, up)))))
	if err != nil {
		return err
	}
	if _, pool, err = r.readBalancer(ctx); err != nil {
		return err
	}
	after := stateOf(members(pool), servingIP)
	r.note("PUT of a load balancer with adminState None", w, "before Down, then "+after, wholeStates)
	if !w.done() {
		r.settle(wholeStates, "", "the write was not done: "+w.String())
		return nil
	}
	a, reason := ofState(down, none, after)
	r.settle(wholeStates, a, reason)
	return nil
}

func (r *run) askNewPools(ctx context.Context) error {
	balancer, _, err := r.readBalancer(ctx)
	if err != nil {
		return err
	}
	sent := []member{r.spare()}
	w, err := r.put(ctx, balancerWrite, write(r.balancer(byAddress), sendable(withPool(balancer, furtherPool, r.poolBody(sent)))))
	if err != nil {
		return err
	}
	if balancer, _, err = r.readBalancer(ctx); err != nil {
		return err
	}
	pool := poolOf(balancer, furtherPool)
	observed := members(pool)
	r.note("PUT of a load balancer with one more pool", w, "then that pool has "+shownMembers(observed), newPools)
	if !w.done() || pool == nil {
		r.settle(newPools, "", "the write was not done: "+w.String())
		return nil
	}
	a, reason := ofNewPool(sent, observed)
	a, reason = agreed([]look{r.first, {"in one that was there", a, reason}})
	r.settle(newPools, a, reason)
	return nil
}
