// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/behaviour"
)

func (r *run) askInterfaceState(ctx context.Context) error {
	id := r.pool(byInterface, membersPool)
	pool, err := r.look(ctx, id)
	if err != nil {
		return err
	}
	list := objects(properties(pool), addressesKey)
	if len(list) != 1 || object(properties(list[0]), "networkInterfaceIPConfiguration") == nil {
		return fmt.Errorf("the pool shows %d entries, and none of a network interface alone", len(list))
	}
	entry := with(list[0], "properties", with(properties(list[0]), stateKey, down))
	body := sendableChild(with(pool, "properties", with(properties(pool), addressesKey, []any{entry})))
	w, err := r.put(ctx, nicPoolWrite, write(id, body))
	if err != nil {
		return err
	}
	if pool, err = r.look(ctx, id); err != nil {
		return err
	}
	after := ""
	if now := members(pool); len(now) == 1 {
		after = now[0].state
	}
	r.note("PUT of a pool with adminState Down on a network interface's entry", w, "then it is "+after, interfaceState)
	if w.Status == statusBadRequest && len(w.Answer.Codes) == 0 {
		r.settle(interfaceState, "", "it was refused with 400 and no code")
		return nil
	}
	a, reason := ofRefusal(w.Answer, w.End, func() (behaviour.Answer, string) { return ofState(none, down, after) })
	r.settle(interfaceState, a, reason)
	return nil
}

// askFailedParent writes a load balancer while its machine is deleted, to make it Failed. No
// reliable way is known.
func (r *run) askFailedParent(ctx context.Context) error {
	balancer, _, err := r.readBalancer(ctx)
	if err != nil {
		return err
	}
	body := sendable(balancer)
	for _, rule := range objects(properties(body), "loadBalancingRules") {
		properties(rule)["idleTimeoutInMinutes"] = 5
	}
	running, err := r.send(ctx, write(r.balancer(byAddress), body))
	if err != nil {
		return err
	}
	machine := r.machine(byAddress)
	gone, err := r.send(ctx, Request{Method: methodDelete, Path: machine, Version: version(machine)})
	if err != nil {
		return err
	}
	w := put{Answer: running}
	if running.took() {
		if w.End, err = r.Azure.Follow(ctx, running); err != nil {
			return err
		}
	}
	if balancer, _, err = r.readBalancer(ctx); err != nil {
		return err
	}
	state := text(properties(balancer), "provisioningState")
	r.note("PUT of a load balancer while its machine is deleted", w, fmt.Sprintf("the deletion is answered with %s, then the load balancer is %s", said(gone), state), failedParent)
	if state != failed {
		reason := "not found out: no load balancer could be brought to Failed"
		if !gone.took() {
			reason += ", for its machine could not be deleted: " + said(gone)
		}
		r.settle(failedParent, "", reason)
		return nil
	}
	w, err = r.put(ctx, "", write(r.pool(byAddress, membersPool), r.poolBody([]member{serving(none), r.spare()})))
	if err != nil {
		return err
	}
	r.note("PUT of a pool whose load balancer is Failed", w, "", failedParent)
	a, reason := ofChildOfFailed(w.Answer)
	r.settle(failedParent, a, reason)
	return nil
}
