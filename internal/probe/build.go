// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"path"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/fault"
)

// build creates all resources. The first write of a load balancer already answers a question.
func (r *run) build(ctx context.Context) error {
	r.Say("making resource group " + r.group + " in " + r.Location)
	existing, err := r.send(ctx, Request{Method: methodGet, Path: r.self(), Version: groupVersion})
	switch {
	case err != nil:
		return fmt.Errorf("look for resource group %s: %w", r.group, err)
	case !existing.gone():
		return fmt.Errorf("look for resource group %s, which should not be there: %s: %s", r.group, said(existing), existing.Message)
	}
	if err := r.makeGroup(ctx); err != nil {
		return err
	}
	for _, part := range []struct {
		what, id string
		body     Object
	}{
		// Azure's default rules block the internet.
		{"network security group", r.securityGroup(), r.located(Object{})},
		{"virtual network", r.virtualNetwork(), r.virtualNetworkBody()},
	} {
		if err := r.create(ctx, part.what, part.id, part.body); err != nil {
			return err
		}
	}
	if err := r.buildBalancers(ctx); err != nil {
		return err
	}
	if err := r.create(ctx, "network interface", r.nic(byAddress), r.nicBody(servingIP)); err != nil {
		return err
	}
	if err := r.create(ctx, "network interface", r.nic(byInterface), r.nicBody(joinedIP, r.pool(byInterface, membersPool))); err != nil {
		return err
	}
	return r.buildMachines(ctx)
}

// makeGroup records an unknown outcome.
func (r *run) makeGroup(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // nothing was sent
	}
	r.made = true // it may exist from here on, whatever the response
	const what = "resource group"
	w, err := r.put(ctx, "", write(r.self(), r.groupBody()))
	r.unanswered = !w.took() && (err != nil && fault.From(err).Undecided || inDoubt(w.Status))
	return made(what, r.self(), w, err)
}

// inDoubt reports whether a proxy may have answered and forwarded the request.
func inDoubt(status int) bool { return status == statusRequestTimeout || status >= statusServerError }

func (r *run) create(ctx context.Context, what, id string, body Object) error {
	w, err := r.put(ctx, "", write(id, body))
	return made(what, id, w, err)
}

func made(what, id string, w put, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case w.done():
		return nil
	}
	message := w.Answer.Message
	if w.took() {
		message = w.End.Message
	}
	return fmt.Errorf("%s %s could not be made: %s: %s", what, path.Base(id), w, message)
}

// buildBalancers writes as Weir does: with addresses and If-None-Match.
func (r *run) buildBalancers(ctx context.Context) error {
	const what = "load balancer"
	r.Say("making the load balancers")
	id, list := r.balancer(byAddress), []member{serving(none), r.spare()}
	q := write(id, r.balancerBody(byAddress, r.poolProperties(list)))
	q.IfNoneMatch = "*"
	w, err := r.put(ctx, "", q)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !w.took() {
		r.note("PUT of a new load balancer, If-None-Match *, addresses in its pool", w, "", newPools, ifNoneMatch)
		r.first = look{"in a new load balancer", "", "the write was refused: " + said(w.Answer)}
		w, err = r.put(ctx, "", write(id, r.balancerBody(byAddress, r.poolProperties(nil))))
		if err := made(what, id, w, err); err != nil {
			return err
		}
	} else if err := made(what, id, w, nil); err != nil {
		return err
	} else if err := r.lookAtNew(ctx, w, list); err != nil {
		return err
	}
	return r.create(ctx, what, r.balancer(byInterface), r.balancerBody(byInterface, Object{}))
}

func (r *run) lookAtNew(ctx context.Context, w put, sent []member) error {
	loadBalancer, err := r.look(ctx, r.balancer(byAddress))
	if err != nil {
		return err
	}
	observed := members(poolOf(loadBalancer, membersPool))
	a, reason := ofNewPool(sent, observed)
	r.first = look{"in a new load balancer", a, reason}
	r.note("PUT of a new load balancer, If-None-Match *, addresses in its pool", w, "then its pool has "+shownMembers(observed), newPools, ifNoneMatch)
	return nil
}

func (r *run) buildMachines(ctx context.Context) error {
	const what = "virtual machine"
	r.Say("starting two virtual machines, which takes a minute or two")
	var started [2]Answer
	for i, kind := range []string{byAddress, byInterface} {
		a, err := r.send(ctx, write(r.machine(kind), r.machineBody(kind)))
		if err != nil || !a.took() {
			return made(what, r.machine(kind), put{Answer: a}, err)
		}
		started[i] = a
	}
	for i, kind := range []string{byAddress, byInterface} {
		end, err := r.Azure.Follow(ctx, started[i])
		if err := made(what, r.machine(kind), put{started[i], end}, err); err != nil {
			return err
		}
	}
	return nil
}

const (
	wholeAddresses = "wholeWriteAddresses"
	wholeStates    = "wholeWriteAdminStates"
	newPools       = "wholeWriteNewPools"
	unchangedEtag  = "unchangedWriteEtag"
	overlapping    = "overlap"
	poolIfMatch    = "poolIfMatch"
	ifNoneMatch    = "ifNoneMatch"
	interfaceState = "interfaceAdminState"
	failedParent   = "failedParent"
)

func asks() string {
	text := ""
	for _, q := range behaviour.Questions() {
		text += fmt.Sprintf("  %-22s  %s\n", q.Name, q.Asks)
	}
	return text
}
