// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
)

func (r *run) checkUpdateAddresses(ctx context.Context) error {
	balancer, pool, err := r.readLoadBalancer(ctx)
	if err != nil {
		return err
	}
	before, sent := poolMembers(pool), []member{servingMember(none), r.newMember()}
	w, err := r.writeAndWait(ctx, loadBalancerWrite, newWrite(r.loadBalancer(byAddress), withoutReadOnly(withPool(balancer, membersPool, withMembers(pool, sent)))))
	if err != nil {
		return err
	}
	_, pool, err = r.readLoadBalancer(ctx)
	if err != nil {
		return err
	}
	after := poolMembers(pool)
	r.recordEvent("PUT of a load balancer with another address", w,
		fmt.Sprintf("before %s, sent %s, then %s", formatMembers(before), formatMembers(sent), formatMembers(after)), updateAddresses)
	if !w.isSucceeded() {
		r.recordResult(updateAddresses, "", "the write was not done: "+w.String())
		return nil
	}
	a, reason := addressesResult(before, sent, after)
	r.recordResult(updateAddresses, a, reason)
	return nil
}

// checkUpdateStates first sets an address Down by a pool PUT, as the baseline.
func (r *run) checkUpdateStates(ctx context.Context) error {
	baseline, err := r.writeAndWait(ctx, poolWrite, newWrite(r.poolPath(byAddress, membersPool), r.poolBody([]member{servingMember(down), r.newMember()})))
	if err != nil {
		return err
	}
	balancer, pool, err := r.readLoadBalancer(ctx)
	if err != nil {
		return err
	}
	before := poolMembers(pool)
	r.recordEvent("PUT of a pool with adminState Down", baseline, "then it is "+memberState(before, servingIP), updateStates)
	if memberState(before, servingIP) != down {
		r.recordResult(updateStates, "", "the pool's own write did not set the address Down: "+baseline.String())
		return nil
	}
	up := make([]member, len(before))
	for i, m := range before {
		up[i] = member{m.name, m.ip, none}
	}
	w, err := r.writeAndWait(ctx, loadBalancerWrite, newWrite(r.loadBalancer(byAddress), withoutReadOnly(withPool(balancer, membersPool, withMembers(pool, up)))))
	if err != nil {
		return err
	}
	if _, pool, err = r.readLoadBalancer(ctx); err != nil {
		return err
	}
	after := memberState(poolMembers(pool), servingIP)
	r.recordEvent("PUT of a load balancer with adminState None", w, "before Down, then "+after, updateStates)
	if !w.isSucceeded() {
		r.recordResult(updateStates, "", "the write was not done: "+w.String())
		return nil
	}
	a, reason := stateResult(down, none, after)
	r.recordResult(updateStates, a, reason)
	return nil
}

func (r *run) checkNewPools(ctx context.Context) error {
	balancer, _, err := r.readLoadBalancer(ctx)
	if err != nil {
		return err
	}
	sent := []member{r.newMember()}
	w, err := r.writeAndWait(ctx, loadBalancerWrite, newWrite(r.loadBalancer(byAddress), withoutReadOnly(withPool(balancer, addedPool, r.poolBody(sent)))))
	if err != nil {
		return err
	}
	if balancer, _, err = r.readLoadBalancer(ctx); err != nil {
		return err
	}
	pool := findPool(balancer, addedPool)
	observed := poolMembers(pool)
	r.recordEvent("PUT of a load balancer with one more pool", w, "then that pool has "+formatMembers(observed), newPools)
	if !w.isSucceeded() || pool == nil {
		r.recordResult(newPools, "", "the write was not done: "+w.String())
		return nil
	}
	a, reason := newPoolResult(sent, observed)
	a, reason = commonResult([]placedResult{r.first, {"in one that was there", a, reason}})
	r.recordResult(newPools, a, reason)
	return nil
}
