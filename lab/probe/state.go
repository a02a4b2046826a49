// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/lb/behavior"
)

func (r *run) checkInterfaceState(ctx context.Context) error {
	id := r.poolPath(byInterface, membersPool)
	pool, err := r.readResource(ctx, id)
	if err != nil {
		return err
	}
	list := objectList(propertiesOf(pool), addressesKey)
	if len(list) != 1 || childObject(propertiesOf(list[0]), "networkInterfaceIPConfiguration") == nil {
		return fmt.Errorf("the pool shows %d entries, and none of a network interface alone", len(list))
	}
	entry := withValue(list[0], "properties", withValue(propertiesOf(list[0]), stateKey, down))
	body := childWithoutReadOnly(withValue(pool, "properties", withValue(propertiesOf(pool), addressesKey, []any{entry})))
	w, err := r.writeAndWait(ctx, nicPoolWrite, newWrite(id, body))
	if err != nil {
		return err
	}
	if pool, err = r.readResource(ctx, id); err != nil {
		return err
	}
	after := ""
	if now := poolMembers(pool); len(now) == 1 {
		after = now[0].state
	}
	r.recordEvent("PUT of a pool with adminState Down on a network interface's entry", w, "then it is "+after, interfaceState)
	if w.Status == statusBadRequest && len(w.Response.Codes) == 0 {
		r.recordResult(interfaceState, "", "it was refused with 400 and no code")
		return nil
	}
	a, reason := rejectionResult(w.Response, w.Result, func() (behavior.Result, string) { return stateResult(none, down, after) })
	r.recordResult(interfaceState, a, reason)
	return nil
}

// checkFailedParent writes a load balancer while its machine is deleted, to make it Failed. No
// reliable way is known.
func (r *run) checkFailedParent(ctx context.Context) error {
	balancer, _, err := r.readLoadBalancer(ctx)
	if err != nil {
		return err
	}
	body := withoutReadOnly(balancer)
	for _, rule := range objectList(propertiesOf(body), "loadBalancingRules") {
		propertiesOf(rule)["idleTimeoutInMinutes"] = 5
	}
	running, err := r.sendRequest(ctx, newWrite(r.loadBalancer(byAddress), body))
	if err != nil {
		return err
	}
	machine := r.machinePath(byAddress)
	gone, err := r.sendRequest(ctx, Request{Method: methodDelete, Path: machine, Version: apiVersion(machine)})
	if err != nil {
		return err
	}
	w := writeResult{Response: running}
	if running.IsAccepted() {
		if w.Result, err = r.Azure.Follow(ctx, running); err != nil {
			return err
		}
	}
	if balancer, _, err = r.readLoadBalancer(ctx); err != nil {
		return err
	}
	state := stringValue(propertiesOf(balancer), "provisioningState")
	r.recordEvent("PUT of a load balancer while its machine is deleted", w, fmt.Sprintf("the response to the deletion is %s, then the load balancer is %s", formatResponse(gone), state), failedParent)
	if state != failed {
		reason := "not found out: no load balancer became Failed"
		if !gone.IsAccepted() {
			reason += ", for its machine could not be deleted: " + formatResponse(gone)
		}
		r.recordResult(failedParent, "", reason)
		return nil
	}
	w, err = r.writeAndWait(ctx, "", newWrite(r.poolPath(byAddress, membersPool), r.poolBody([]member{servingMember(none), r.newMember()})))
	if err != nil {
		return err
	}
	r.recordEvent("PUT of a pool of a Failed load balancer", w, "", failedParent)
	a, reason := failedParentResult(w.Response)
	r.recordResult(failedParent, a, reason)
	return nil
}
