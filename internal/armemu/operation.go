// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"math"
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

// pollEvery is what Retry-After asks of pollers at latency scale 1.
const pollEvery = 10 * time.Second

// keptOperations bounds the memory of a long-lived server: the oldest finished
// operations are forgotten beyond it.
const keptOperations = 20_000

// sigma of the log-normal latency: the 99th percentile of a pool's PUT is 40 s
// at a median of 6 s, and the other types are given the same spread. Assumed.
var latencySigma = math.Log(40.0/6.0) / 2.3263

// An operation is a write that was accepted and takes time.
type operation struct {
	id       string
	name     string // e.g. PutLoadBalancerOperation
	target   resourceID
	remove   bool
	before   fields // root body that a failure brings back; nil on create
	deadline time.Time
	stuck    bool
	status   string
	problem  *Problem // why it ended, or will end, Failed or Canceled
	keep     bool     // a failure leaves the content that was written
	polls    *pollFault
}

// start accepts the write: root is the aggregate's body from now on (for a
// DELETE it stays as it was until the operation is done).
func (e *Emulator) start(x *exchange, agg *aggregate, root, before fields) *operation {
	verb, median := "Put", medians(x.route.id).put
	if x.route.kind == KindDelete {
		verb, median = "Delete", medians(x.route.id).delete
	}
	op := &operation{
		id: e.guid(), name: verb + operationName(x.route.id) + "Operation", target: x.route.id,
		remove: x.route.kind == KindDelete, before: before, status: opInProgress,
		deadline: x.now.Add(e.latency(median)),
	}
	e.cancelRunning(agg, op)
	if f := x.fault; f != nil {
		op.stuck, op.polls, op.keep = f.Operation.stuck(), f.polls(), f.Applied
		op.problem = f.Operation.failure()
	}
	agg.op, agg.body, agg.etag = op, root, e.newEtag()
	agg.touched, agg.state = x.route.id, stateUpdating
	if op.remove {
		agg.state = stateDeleting
	}
	e.remember(op)
	e.changed(op.target, before, root)
	e.programmed(op.target, x.now)
	return op
}

func (e *Emulator) cancelRunning(agg *aggregate, by *operation) {
	run := agg.op
	if run == nil {
		return
	}
	run.status = opCanceled
	run.problem = &Problem{Code: "Canceled", Message: "Operation was canceled.", Details: []Detail{{
		Code: "CanceledAndSupersededDueToAnotherOperation",
		Message: fmt.Sprintf("Operation %s (%s) was canceled and superseded by operation %s (%s).",
			run.name, run.id, by.name, by.id),
	}}}
	e.forgetRunning(run)
}

func (e *Emulator) remember(op *operation) {
	e.operations[op.id] = op
	e.running = append(e.running, op)
	e.opOrder = append(e.opOrder, op.id)
	for len(e.opOrder) > keptOperations && e.operations[e.opOrder[0]].status != opInProgress {
		delete(e.operations, e.opOrder[0])
		e.opOrder = e.opOrder[1:]
	}
}

func (e *Emulator) forgetRunning(op *operation) {
	e.running = slices.DeleteFunc(e.running, func(o *operation) bool { return o == op })
}

// settle finishes what has come due. Everything that looks at state calls it
// first, so no goroutine has to.
func (e *Emulator) settle(now time.Time) {
	e.settleGroups(now)
	due := slices.DeleteFunc(slices.Clone(e.running), func(op *operation) bool { return op.stuck || now.Before(op.deadline) })
	slices.SortStableFunc(due, func(a, b *operation) int { return a.deadline.Compare(b.deadline) })
	for _, op := range due {
		e.forgetRunning(op)
		agg := e.aggregates[op.target.rootKey()]
		agg.op = nil
		switch {
		case op.problem != nil:
			op.status = opFailed
			agg.state = stateFailed
			agg.etag = e.newEtag()
			switch {
			case op.before == nil:
				agg.body = withoutAddress(agg.id.root, agg.body)
			case !op.keep:
				agg.body = op.before
			}
		case op.remove && op.target.child == nil:
			op.status = opSucceeded
			delete(e.aggregates, op.target.rootKey())
		default:
			op.status = opSucceeded
			agg.state = stateSucceeded
			if op.remove {
				agg.body = withChildBody(agg.body, op.target, nil)
			}
		}
		e.changed(op.target, op.before, agg.body)
		e.programmed(op.target, op.deadline)
	}
}

// latency draws from the seeded model.
func (e *Emulator) latency(median float64) time.Duration {
	seconds := median
	if !e.opts.LatencyFixed {
		seconds *= math.Exp(latencySigma * e.random.NormFloat64())
	}
	return time.Duration(seconds * e.opts.LatencyScale * float64(time.Second))
}

func (e *Emulator) pollAfter() time.Duration {
	return time.Duration(float64(pollEvery) * e.opts.LatencyScale)
}

// operationURL is absolute, as the SDKs require, and leads back to wherever the
// request was sent.
func operationURL(x *exchange, op *operation, segment string) string {
	return absolute(x, &url.URL{
		Path: "/subscriptions/" + op.target.subscription + "/providers/" + op.target.root.namespace +
			"/locations/eastus/" + segment + "/" + op.id,
		RawQuery: url.Values{"api-version": {x.req.URL.Query().Get("api-version")}}.Encode(),
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

// poll answers a GET of an operation.
func (e *Emulator) poll(x *exchange) *Problem {
	op := e.operations[x.route.operation]
	if op == nil || !sameName(op.target.subscription, x.route.subscription) {
		return notFound("NotFound", fmt.Sprintf("The operation %q is not known.", x.route.operation))
	}
	x.call.Operation, x.call.Resource = op.id, op.target.String()
	if op.polls != nil && op.polls.Times > 0 {
		op.polls.Times--
		return op.polls.problem()
	}
	x.status = http.StatusOK
	if op.status == opInProgress {
		x.header.Set("Retry-After", wholeSeconds(e.pollAfter()))
	}
	if x.route.result {
		x.status = http.StatusNoContent
		if op.status == opInProgress {
			x.status = http.StatusAccepted
			x.header.Set("Location", operationURL(x, op, "operationResults"))
		}
		return nil
	}
	body := fields{"status": op.status}
	if op.status == opFailed || op.status == opCanceled {
		body["error"] = op.problem.fields()
	}
	x.body = body
	return nil
}

func operationName(id resourceID) string {
	if id.child != nil {
		return id.child.operation
	}
	return id.root.operation
}

func medians(id resourceID) (m struct{ put, delete float64 }) {
	m.put, m.delete = id.root.putMedian, id.root.deleteMedian
	if id.child != nil {
		m.put, m.delete = id.child.putMedian, id.child.deleteMedian
	}
	return m
}
