// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"
)

const (
	opInProgress = "InProgress"
	opSucceeded  = "Succeeded"
	opFailed     = "Failed"
	opCanceled   = "Canceled"
)

// maxOperations limits the memory of a long-lived server.
const maxOperations = 20_000

type operation struct {
	id              string
	name            string // e.g. PutLoadBalancerOperation
	target          resourceID
	remove          bool
	before          fields // root body to restore on failure; nil on create
	upgradeBatches  []upgradeBatch
	deadline        time.Time
	stuck           bool
	status          string
	problem         *Problem // why it ends Failed or Canceled
	retainOnFailure bool     // retain the content on failure
	pollFault       *pollFault
	supersededBy    *operation // superseded by
	latency         time.Duration
	// overwritten: a later write replaced the content.
	overwritten bool
	// query is what every poll must send back.
	query     url.Values
	pollAfter time.Duration
	// isHealth: it reads the health of the rule target, and ends at deadline without being in running.
	isHealth bool
}

// startOperation makes p.root the stored body (after the operation for a DELETE).
func (e *Emulator) startOperation(x *exchange, agg *aggregate, p *proposal) *operation {
	op := &operation{
		id: e.newGUID(), name: operationName(p.id, p.on), target: p.id, remove: p.on == KindDelete,
		before: p.before, status: opInProgress, pollAfter: e.pollInterval(p.id, p.on, agg.state == "", p.root),
	}
	op.query = urlSignature(p.id.root.namespace, op.id)
	e.cancelRunning(agg, op, x.now)
	if f := x.fault; f != nil {
		op.stuck, op.pollFault, op.retainOnFailure = f.Operation.isStuck(), f.copyPollFault(), f.Applied
		op.problem = f.Operation.toProblem()
	}
	if op.problem == nil {
		op.problem = e.rejectDeletedMachine(p)
	}
	m := max(e.poolMemberKind(p.id, p.before), e.poolMemberKind(p.id, p.root))
	machines := len(e.machinesOfNIC(p.id)) > 0
	if completesAtOnce(p, agg.state, m, machines) && !op.stuck && op.problem == nil {
		op.status = opSucceeded
	}
	agg.body, agg.lastWritten, agg.lastOperation = p.root, p.id, op.name
	if op.status != opSucceeded || !retainsEtag(p, e.opts.Behavior) {
		e.renewEtag(agg)
	}
	if op.status == opSucceeded {
		agg.state = stateSucceeded
	} else {
		agg.op, agg.state = op, stateUpdating
		took := writeLatency(p.id, p.on, e.opts.Latency, m, machines)
		if p.action != nil {
			took = p.action.latency
		}
		op.latency = e.sampleLatency(took)
		op.deadline = x.now.Add(op.latency)
	}
	if op.remove {
		agg.state = stateDeleting
	}
	e.addOperation(op)
	e.updateReferences(op.target, p.before, p.root)
	e.updateDataPlane(op.target, x.now)
	return op
}

func (e *Emulator) cancelRunning(agg *aggregate, by *operation, now time.Time) {
	e.markOverwritten(by.target)
	run := agg.op
	if run == nil {
		return
	}
	run.supersededBy = by
	run.problem = &Problem{Code: "Canceled", Message: "Operation was canceled.", Details: []Detail{{
		Code: "CanceledAndSupersededDueToAnotherOperation",
		Message: fmt.Sprintf("Operation %s (%s) was canceled and superseded by operation %s (%s).",
			run.name, run.id, by.name, by.id),
	}}}
	e.cancelUpgrades(run)
	if e.isDiscardedLate(run) {
		run.stuck, run.deadline, run.overwritten = false, now.Add(3*run.latency+e.scaleDuration(pollInterval)), run.target.key() == by.target.key() || by.target.child == nil
		return
	}
	run.status = opCanceled
	e.removeRunning(run)
}

func (e *Emulator) addOperation(op *operation) {
	e.operations[op.id] = op
	if op.status == opInProgress {
		e.running = append(e.running, op)
	}
	e.opOrder = append(e.opOrder, op.id)
	for len(e.opOrder) > maxOperations && e.operations[e.opOrder[0]].status != opInProgress {
		delete(e.operations, e.opOrder[0])
		e.opOrder = e.opOrder[1:]
	}
}

func (e *Emulator) removeRunning(op *operation) {
	e.running = slices.DeleteFunc(e.running, func(o *operation) bool { return o == op })
}

// finishDue finishes due operations. Every access to state calls it first, so no goroutine is needed.
func (e *Emulator) finishDue(now time.Time) {
	e.finishGroupDeletions(now)
	due := slices.DeleteFunc(slices.Clone(e.running), func(op *operation) bool { return op.stuck || now.Before(op.deadline) })
	slices.SortStableFunc(due, func(a, b *operation) int { return a.deadline.Compare(b.deadline) })
	for _, op := range due {
		e.revision++
		e.applyUpgrades(op.deadline)
		if op.status != opInProgress {
			continue // ended with another that was due
		}
		e.removeRunning(op)
		if op.supersededBy != nil {
			e.discardWrite(op)
			continue
		}
		agg := e.aggregates[op.target.rootKey()]
		agg.op = nil
		switch {
		case op.problem != nil:
			op.status = opFailed
			agg.state = stateFailed
			switch {
			case op.before == nil:
				agg.body = withoutAddress(agg.id.root, agg.body)
			case !op.retainOnFailure:
				agg.body = op.before
			}
		case op.remove && op.target.child == nil:
			op.status = opSucceeded
			delete(e.aggregates, op.target.rootKey())
			e.removePoolReferences(op.target)
			e.removeInstances(op.target)
		default:
			op.status = opSucceeded
			agg.state = stateSucceeded
			if op.remove {
				agg.body = withChildBody(agg.body, op.target, nil)
			}
		}
		e.renewEtag(agg)
		e.updateReferences(op.target, op.before, agg.body)
		e.updateDataPlane(op.target, op.deadline)
		if op.status == opSucceeded && !op.remove {
			e.scaleInstances(agg, op.deadline)
		}
	}
	e.applyUpgrades(now)
}

// operationURL uses the host of the request.
func operationURL(x *exchange, op *operation, segment string) string {
	query := maps.Clone(op.query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("api-version", x.req.URL.Query().Get("api-version"))
	return absoluteURL(x, &url.URL{
		Path: "/subscriptions/" + op.target.subscription + "/providers/" + op.target.root.namespace +
			"/locations/eastus/" + segment + "/" + op.id,
		RawQuery: query.Encode(),
	})
}

func absoluteURL(x *exchange, u *url.URL) string {
	scheme := x.req.URL.Scheme
	if scheme == "" {
		scheme = "http"
		if x.req.TLS != nil {
			scheme = "https"
		}
	}
	host := x.req.Host
	if host == "" {
		host = x.req.URL.Host
	}
	u.Scheme, u.Host = scheme, host
	return u.String()
}

func (e *Emulator) pollOperation(x *exchange) *Problem {
	op := e.operations[x.route.operation]
	if op == nil || !sameName(op.target.subscription, x.route.subscription) {
		return &Problem{Status: http.StatusNotFound, Code: "NotFound", Message: fmt.Sprintf("The operation %q is not known.", x.route.operation)}
	}
	if !op.hasSignature(x.req.URL.Query()) {
		return notFound("NotFound", fmt.Sprintf("The operation %q is not known by this URL: send its query parameters back as they were given.", x.route.operation))
	}
	x.call.Operation, x.call.Resource = op.id, op.target.String()
	if op.pollFault != nil && op.pollFault.Times > 0 {
		op.pollFault.Times--
		return op.pollFault.toProblem()
	}
	if op.isHealth {
		return e.pollHealth(x, op)
	}
	x.status = http.StatusOK
	if op.status == opInProgress {
		x.header.Set("Retry-After", wholeSeconds(op.pollAfter))
	}
	if x.route.result {
		x.status = http.StatusNoContent
		if op.status == opInProgress {
			x.status = http.StatusAccepted
			x.header.Set("Location", operationURL(x, op, "operationResults"))
		}
		return nil
	}
	if op.supersededBy != nil && op.status == opCanceled {
		x.header.Set("Canceled-By-Azure-AsyncOperation", operationURL(x, op.supersededBy, "operations"))
	}
	body := fields{"status": op.status}
	if op.status == opFailed || op.status == opCanceled {
		body["error"] = op.problem.toFields()
	}
	x.body = body
	return nil
}

func operationName(id resourceID, kind Kind) string {
	verb, noun := "Put", id.root.operation
	switch kind {
	case KindDelete:
		verb = "Delete"
	case KindAction:
		verb = "Post"
	}
	if id.child != nil {
		noun = id.child.operation
	}
	return verb + noun + "Operation"
}

func urlSignature(namespace, id string) url.Values {
	query := url.Values{}
	names := []string{"t", "c", "s", "h"}
	if namespace == compute {
		names = append(names, "p")
	}
	for _, name := range names {
		sum := sha256.Sum256([]byte(name + id))
		query.Set(name, base64.RawURLEncoding.EncodeToString(sum[:]))
	}
	return query
}

func (o *operation) hasSignature(query url.Values) bool {
	for key, values := range o.query {
		if query.Get(key) != values[0] {
			return false
		}
	}
	return true
}
