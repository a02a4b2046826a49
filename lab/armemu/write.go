// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"

	"weir.dev/weir/internal/lb/behavior"
)

func (e *Emulator) baseBody(agg *aggregate) fields {
	if agg == nil {
		return nil
	}
	if e.opts.Behavior.Overlap == behavior.SupersedeDiscard && agg.op != nil && agg.op.before != nil {
		return agg.op.before
	}
	return agg.body
}

func (e *Emulator) proposeWrite(x *exchange) (*proposal, *Problem) {
	id := x.route.id
	agg := e.aggregates[id.rootKey()]
	p := &proposal{e: e, id: id, on: x.route.kind, before: e.baseBody(agg)}
	if x.route.kind == KindDelete {
		p.root = p.before
		return p, nil
	}
	body, err := x.decodeObject()
	if err == nil && (p.on == KindPatch || id.root == scaleSetKind && p.before != nil) { // Compute merges these into the current body
		p.on, body = KindPut, mergePatch(p.before, body)
	}
	if err == nil {
		err = checkShape(id, body)
	}
	if err != nil {
		return nil, badJSON(err)
	}
	clean := e.stripReadOnly(id, body)
	if id.child != nil {
		if old := findChild(p.before, id); old != nil {
			clean = retainProperties(id.child, old, clean)
		}
		p.requestBody, p.isUnchanged = clean, e.isUnchanged(id, p.before, clean)
		p.hasAddressList = propertyFields(body)[addresses] != nil
		if id.child == poolKind {
			clean = e.storePoolEntries(id, findChild(p.before, id), clean)
		}
		p.root = withChildBody(p.before, id, clean)
		return p, nil
	}
	p.root = fillDefaults(id.root, clean)
	if p.before != nil {
		p.root = retainServerState(id.root, p.before, p.root)
	}
	p.requestBody, p.isUnchanged = p.root, e.isUnchanged(id, p.before, p.root)
	if id.root == loadBalancerKind {
		p.root = e.storeAllPoolEntries(id, p.before, p.root)
	}
	p.root = e.allocateAddresses(id, p.root)
	return p, nil
}

func (e *Emulator) commitWrite(x *exchange, p *proposal) *Problem {
	id := x.route.id
	agg := e.aggregates[id.rootKey()]
	if problem := e.rejectConcurrent(x, agg); problem != nil {
		return problem
	}
	x.status = http.StatusCreated
	if agg != nil && agg.hasResource(id) {
		x.status = http.StatusOK
	}
	if agg == nil {
		agg = &aggregate{id: id.rootID()}
		if id.root.guid {
			agg.guid = e.newGUID()
		}
		e.aggregates[id.rootKey()] = agg
		e.ensureGroup(id)
	}
	e.markAllocated(id, p.root)
	p.root = withOrigins(p.before, p.root, x.callerID)
	op := e.startOperation(x, agg, p)
	e.scheduleUpgrades(op, e.planUpgradeBatches(op, p))
	x.call.Operation, x.call.EtagAfter = op.id, agg.etag
	setPollHeaders(x, op)
	if op.remove {
		x.status = id.deleteStatus()
		return nil
	}
	if id.root.namespace == compute {
		x.header.Set("Etag", agg.etag)
	}
	x.body = e.renderExpanded(agg, id, "")
	return nil
}

// setPollHeaders skips a finished PUT of a network interface, which has no operation.
func setPollHeaders(x *exchange, op *operation) {
	if op.status == opSucceeded && op.target.root == networkInterfaceKind {
		return
	}
	x.header.Set("Azure-AsyncOperation", operationURL(x, op, "operations"))
	x.header.Set("Azure-AsyncNotification", "Enabled")
	if op.status == opInProgress {
		x.header.Set("Retry-After", wholeSeconds(op.pollAfter))
	}
	if op.remove || x.route.kind == KindAction {
		x.header.Set("Location", operationURL(x, op, "operationResults"))
	}
}

func (e *Emulator) rejectOverlap(x *exchange, agg *aggregate) *Problem {
	run := agg.op
	if run == nil {
		return nil
	}
	wait := max(run.deadline.Sub(x.now), 1)
	if run.stuck {
		wait = max(pollInterval, e.scaleDuration(pollInterval))
	}
	switch e.overlapPolicy() {
	case behavior.Lock:
		return &Problem{
			Status: http.StatusTooManyRequests, Code: "RetryableError", Message: "A retryable error occurred.", RetryAfter: wait,
			Details: []Detail{{
				Code: "RetryableErrorDueToAnotherOperation",
				Message: fmt.Sprintf("Operation %s (%s) is updating resource %s. The call can be retried in %s seconds.",
					run.name, run.id, agg.id, wholeSeconds(wait)),
			}},
		}
	case behavior.Conflict:
		return &Problem{
			Status: http.StatusConflict, Code: "AnotherOperationInProgress",
			Message: "Another operation on this or dependent resource is in progress. To retrieve status of the operation use uri: " +
				operationURL(x, run, "operations"),
		}
	}
	return nil
}

func (e *Emulator) rejectUnprovisioned(p *proposal) *Problem {
	if p.on != KindPut || p.id.child != nil {
		return nil
	}
	uses := []fields{propertyFields(p.root)}
	if k := p.id.root.ipConfigs; k != nil {
		uses = listProperties(objectList(propertyFields(p.root), k.collection))
	}
	for _, props := range uses {
		for _, key := range []string{"publicIPAddress", "publicIPPrefix"} {
			agg := e.aggregates[referenceID(props, key)]
			if agg == nil || agg.state == stateSucceeded {
				continue
			}
			return notProvisioned(agg, p.id)
		}
	}
	return nil
}

func notProvisioned(agg *aggregate, by resourceID) *Problem {
	return &Problem{
		Status: http.StatusTooManyRequests, Code: "RetryableError", Message: "A retryable error occurred.",
		Details: []Detail{{
			Code: "ReferencedResourceNotProvisioned",
			Message: fmt.Sprintf("Cannot proceed with operation because resource %s used by resource %s is not in Succeeded state. Resource is in %s state and the last operation that updated/is updating the resource is %s.",
				agg.id, by, agg.state, agg.lastOperation),
		}},
	}
}
