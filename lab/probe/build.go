// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"path"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb/behavior"
)

// createAll creates all resources. The first write of a load balancer already answers a question.
func (r *run) createAll(ctx context.Context) error {
	r.Log("making resource group " + r.group + " in " + r.Location)
	existing, err := r.sendRequest(ctx, Request{Method: methodGet, Path: r.groupPath(), Version: groupVersion})
	switch {
	case err != nil:
		return fmt.Errorf("read resource group %s: %w", r.group, err)
	case !isGroupMissing(existing):
		return fmt.Errorf("resource group %s must not exist: %s: %s", r.group, formatResponse(existing), existing.Message)
	}
	if err := r.createGroup(ctx); err != nil {
		return err
	}
	for _, part := range []struct {
		name, id string
		body     Object
	}{
		// Azure's default rules block the internet.
		{"network security group", r.securityGroupPath(), r.newResource(Object{})},
		{"virtual network", r.virtualNetworkPath(), r.virtualNetworkBody()},
	} {
		if err := r.createResource(ctx, part.name, part.id, part.body); err != nil {
			return err
		}
	}
	if err := r.createLoadBalancers(ctx); err != nil {
		return err
	}
	if err := r.createResource(ctx, "network interface", r.interfacePath(byAddress), r.nicBody(servingIP)); err != nil {
		return err
	}
	if err := r.createResource(ctx, "network interface", r.interfacePath(byInterface), r.nicBody(interfaceIP, r.poolPath(byInterface, membersPool))); err != nil {
		return err
	}
	return r.createMachines(ctx)
}

// createGroup records an unknown outcome.
func (r *run) createGroup(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // nothing was sent
	}
	r.groupCreated = true // it may exist from here on, whatever the response
	const what = "resource group"
	w, err := r.writeAndWait(ctx, "", newWrite(r.groupPath(), r.groupBody()))
	r.groupUncertain = !w.IsAccepted() && (err != nil && armerror.FromError(err).MayBeApplied || isUncertain(w.Status))
	return creationError(what, r.groupPath(), w, err)
}

// isUncertain reports whether a proxy may have answered and forwarded the request.
func isUncertain(status int) bool {
	return status == statusRequestTimeout || status >= statusServerError
}

func (r *run) createResource(ctx context.Context, name, id string, body Object) error {
	w, err := r.writeAndWait(ctx, "", newWrite(id, body))
	return creationError(name, id, w, err)
}

func creationError(name, id string, w writeResult, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case w.isSucceeded():
		return nil
	}
	message := w.Response.Message
	if w.IsAccepted() {
		message = w.Result.Message
	}
	return fmt.Errorf("%s %s could not be made: %s: %s", name, path.Base(id), w, message)
}

// createLoadBalancers writes as Weir does: with addresses and If-None-Match.
func (r *run) createLoadBalancers(ctx context.Context) error {
	const what = "load balancer"
	r.Log("making the load balancers")
	id, list := r.loadBalancer(byAddress), []member{servingMember(none), r.newMember()}
	q := newWrite(id, r.loadBalancerBody(byAddress, r.poolProperties(list)))
	q.IfNoneMatch = "*"
	w, err := r.writeAndWait(ctx, "", q)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !w.IsAccepted() {
		r.recordEvent("PUT of a new load balancer, If-None-Match *, addresses in its pool", w, "", newPools, ifNoneMatch)
		r.first = placedResult{"in a new load balancer", "", "the write was refused: " + formatResponse(w.Response)}
		w, err = r.writeAndWait(ctx, "", newWrite(id, r.loadBalancerBody(byAddress, r.poolProperties(nil))))
		if err := creationError(what, id, w, err); err != nil {
			return err
		}
	} else if err := creationError(what, id, w, nil); err != nil {
		return err
	} else if err := r.checkNewLoadBalancer(ctx, w, list); err != nil {
		return err
	}
	return r.createResource(ctx, what, r.loadBalancer(byInterface), r.loadBalancerBody(byInterface, Object{}))
}

func (r *run) checkNewLoadBalancer(ctx context.Context, w writeResult, sent []member) error {
	loadBalancer, err := r.readResource(ctx, r.loadBalancer(byAddress))
	if err != nil {
		return err
	}
	observed := poolMembers(findPool(loadBalancer, membersPool))
	a, reason := newPoolResult(sent, observed)
	r.first = placedResult{"in a new load balancer", a, reason}
	r.recordEvent("PUT of a new load balancer, If-None-Match *, addresses in its pool", w, "then its pool has "+formatMembers(observed), newPools, ifNoneMatch)
	return nil
}

func (r *run) createMachines(ctx context.Context) error {
	const what = "virtual machine"
	r.Log("starting two virtual machines (one to two minutes)")
	var started [2]Response
	for i, kind := range []string{byAddress, byInterface} {
		a, err := r.sendRequest(ctx, newWrite(r.machinePath(kind), r.machineBody(kind)))
		if err != nil || !a.IsAccepted() {
			return creationError(what, r.machinePath(kind), writeResult{Response: a}, err)
		}
		started[i] = a
	}
	for i, kind := range []string{byAddress, byInterface} {
		end, err := r.Azure.Follow(ctx, started[i])
		if err := creationError(what, r.machinePath(kind), writeResult{started[i], end}, err); err != nil {
			return err
		}
	}
	return nil
}

const (
	updateAddresses = "wholeWriteAddresses"
	updateStates    = "wholeWriteAdminStates"
	newPools        = "wholeWriteNewPools"
	noChangeEtag    = "unchangedWriteEtag"
	overlap         = "overlap"
	poolIfMatch     = "poolIfMatch"
	ifNoneMatch     = "ifNoneMatch"
	interfaceState  = "interfaceAdminState"
	failedParent    = "failedParent"
	labelFamilies   = "dnsLabelBothFamilies"
)

func listProperties() string {
	text := ""
	for _, q := range behavior.AllProperties() {
		text += fmt.Sprintf("  %-22s  %s\n", q.Name, q.Description)
	}
	return text
}
