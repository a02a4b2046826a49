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

// Operation states on the wire.
const (
	opInProgress = "InProgress"
	opSucceeded  = "Succeeded"
	opFailed     = "Failed"
	opCanceled   = "Canceled"
)

// keptOperations limits the memory of a long-lived server: it drops the oldest finished operations.
const keptOperations = 20_000

// operation is an accepted long-running write.
type operation struct {
	id       string
	name     string // e.g. PutLoadBalancerOperation
	target   resourceID
	remove   bool
	before   fields // root body to restore on failure; nil on create
	rolls    []roll // pending scale set upgrades
	deadline time.Time
	stuck    bool
	status   string
	problem  *Problem // why it ended, or will end, as Failed or Canceled
	keep     bool     // a failure retains the written content
	polls    *pollFault
	by       *operation // operation that superseded it
	took     time.Duration
	// owned reports whether a later write replaced this write's content.
	owned bool
	// query holds the parameters of the operation's URL that every poll must send back.
	query     url.Values
	pollAfter time.Duration
}

// start accepts the write: p.root becomes the aggregate's body (on DELETE it remains until the
// operation is done). Some writes finish at once.
func (e *Emulator) start(x *exchange, agg *aggregate, p *proposal) *operation {
	op := &operation{
		id: e.guid(), name: operationName(p.id, p.on), target: p.id, remove: p.on == KindDelete,
		before: p.before, status: opInProgress, pollAfter: e.pollsAfter(p.id, p.on, agg.state == "", p.root),
	}
	op.query = signature(p.id.root.namespace, op.id)
	e.cancelRunning(agg, op, x.now)
	if f := x.fault; f != nil {
		op.stuck, op.polls, op.keep = f.Operation.stuck(), f.polls(), f.Applied
		op.problem = f.Operation.failure()
	}
	if op.problem == nil {
		op.problem = e.startTenantUpdate(p)
	}
	m := max(e.membersOf(p.id, p.before), e.membersOf(p.id, p.root))
	machines := len(e.hosts(p.id)) > 0
	if doneAtOnce(p, agg.state, m, machines) && !op.stuck && op.problem == nil {
		op.status = opSucceeded
	}
	agg.body, agg.touched, agg.last = p.root, p.id, op.name
	if op.status != opSucceeded || !keepsEtag(p, e.opts.Behaviour) {
		e.retag(agg)
	}
	if op.status == opSucceeded {
		agg.state = stateSucceeded
	} else {
		agg.op, agg.state = op, stateUpdating
		took := spreadOf(p.id, p.on, e.opts.Latency, m, machines)
		if p.action != nil {
			took = p.action.takes
		}
		op.took = e.latency(took)
		op.deadline = x.now.Add(op.took)
	}
	if op.remove {
		agg.state = stateDeleting
	}
	e.remember(op)
	e.changed(op.target, p.before, p.root)
	e.programmed(op.target, x.now)
	return op
}

func (e *Emulator) cancelRunning(agg *aggregate, by *operation, now time.Time) {
	e.own(by.target)
	run := agg.op
	if run == nil {
		return
	}
	run.by = by
	run.problem = &Problem{Code: "Canceled", Message: "Operation was canceled.", Details: []Detail{{
		Code: "CanceledAndSupersededDueToAnotherOperation",
		Message: fmt.Sprintf("Operation %s (%s) was canceled and superseded by operation %s (%s).",
			run.name, run.id, by.name, by.id),
	}}}
	e.endRolls(run)
	if e.discardsLate(run) {
		run.stuck, run.deadline, run.owned = false, now.Add(3*run.took+e.scaled(pollEvery)), run.target.key() == by.target.key() || by.target.child == nil
		return
	}
	run.status = opCanceled
	e.forgetRunning(run)
}

func (e *Emulator) remember(op *operation) {
	e.operations[op.id] = op
	if op.status == opInProgress {
		e.running = append(e.running, op)
	}
	e.opOrder = append(e.opOrder, op.id)
	for len(e.opOrder) > keptOperations && e.operations[e.opOrder[0]].status != opInProgress {
		delete(e.operations, e.opOrder[0])
		e.opOrder = e.opOrder[1:]
	}
}

func (e *Emulator) forgetRunning(op *operation) {
	e.running = slices.DeleteFunc(e.running, func(o *operation) bool { return o == op })
}

// settle finishes the operations that are due. Every access to state calls it first, so no
// goroutine is needed.
func (e *Emulator) settle(now time.Time) {
	e.settleGroups(now)
	due := slices.DeleteFunc(slices.Clone(e.running), func(op *operation) bool { return op.stuck || now.Before(op.deadline) })
	slices.SortStableFunc(due, func(a, b *operation) int { return a.deadline.Compare(b.deadline) })
	for _, op := range due {
		e.rollUntil(op.deadline)
		if op.status != opInProgress {
			continue // ended with another that was due
		}
		e.forgetRunning(op)
		if op.by != nil {
			e.discard(op)
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
			case !op.keep:
				agg.body = op.before
			}
		case op.remove && op.target.child == nil:
			op.status = opSucceeded
			delete(e.aggregates, op.target.rootKey())
			e.leavePools(op.target)
			e.removeBelow(op.target)
		default:
			op.status = opSucceeded
			agg.state = stateSucceeded
			if op.remove {
				agg.body = withChildBody(agg.body, op.target, nil)
			}
		}
		e.retag(agg)
		e.changed(op.target, op.before, agg.body)
		e.programmed(op.target, op.deadline)
		if op.status == opSucceeded && !op.remove {
			e.resize(agg, op.deadline)
		}
	}
	e.rollUntil(now)
}

// operationURL returns an absolute URL, as the SDKs require, on the host of the request.
func operationURL(x *exchange, op *operation, segment string) string {
	query := maps.Clone(op.query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("api-version", x.req.URL.Query().Get("api-version"))
	return absolute(x, &url.URL{
		Path: "/subscriptions/" + op.target.subscription + "/providers/" + op.target.root.namespace +
			"/locations/eastus/" + segment + "/" + op.id,
		RawQuery: query.Encode(),
	})
}

func absolute(x *exchange, u *url.URL) string {
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

// poll serves a GET of an operation.
func (e *Emulator) poll(x *exchange) *Problem {
	op := e.operations[x.route.operation]
	if op == nil || !sameName(op.target.subscription, x.route.subscription) {
		return &Problem{Status: http.StatusNotFound, Code: "NotFound", Message: fmt.Sprintf("The operation %q is not known.", x.route.operation)}
	}
	if !op.signedBy(x.req.URL.Query()) {
		return notFound("NotFound", fmt.Sprintf("The operation %q is not known by this URL: send its query parameters back as they were given.", x.route.operation))
	}
	x.call.Operation, x.call.Resource = op.id, op.target.String()
	if op.polls != nil && op.polls.Times > 0 {
		op.polls.Times--
		return op.polls.problem()
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
	if op.by != nil && op.status == opCanceled {
		x.header.Set("Canceled-By-Azure-AsyncOperation", operationURL(x, op.by, "operations"))
	}
	body := fields{"status": op.status}
	if op.status == opFailed || op.status == opCanceled {
		body["error"] = op.problem.fields()
	}
	x.body = body
	return nil
}

// operationName returns Azure's name of an operation, e.g. PutLoadBalancerOperation.
func operationName(id resourceID, kind Kind) string {
	verb, what := "Put", id.root.operation
	switch kind {
	case KindDelete:
		verb = "Delete"
	case KindAction:
		verb = "Post"
	}
	if id.child != nil {
		what = id.child.operation
	}
	return verb + what + "Operation"
}

// signature returns the opaque parameters of an operation's URL.
func signature(namespace, id string) url.Values {
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

func (o *operation) signedBy(query url.Values) bool {
	for key, values := range o.query {
		if query.Get(key) != values[0] {
			return false
		}
	}
	return true
}
