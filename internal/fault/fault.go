// SPDX-License-Identifier: Apache-2.0

// Package fault says what a failed attempt to change Azure means: which of the
// retry layers owns it and when it may be tried again. An adapter describes what
// came back as an Answer; Classify is the one table that turns it into a Fault;
// only a Fault travels back into the rooms.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Class says what becomes of the operations behind a failed attempt.
type Class string

const (
	// Stale means that the pool or its load balancer is gone: nothing to do, nothing to report.
	Stale Class = "Stale"
	// Retriable means that the pool lane tries again while the budget lasts.
	Retriable Class = "Retriable"
	// Terminal means that trying again at this layer cannot help, or that the
	// layer below has already done so.
	Terminal Class = "Terminal"
	// Shutdown means that the controller is stopping: nothing is kept and nobody is told.
	Shutdown Class = "Shutdown"
)

// Fault is a classified failure.
type Fault struct {
	Class Class
	// Reason is the rule that decided, as a word for metrics: one of a few.
	Reason string
	// Code is a stable word for messages: Azure's error code where there is one,
	// otherwise one of the Code constants.
	Code string
	// RetryAt is the server's Retry-After as a time; zero if it named none.
	RetryAt time.Time
	// Undecided is true if a write may have landed, or land later, all the same.
	Undecided bool
	// Ended is true if Azure had accepted a write, and it ended badly: what it was to change
	// may be out of force, whatever it shows.
	Ended bool
	// RequestID and CorrelationID are what Azure calls the request that failed, and its support asks
	// for; empty if it did not answer, or named none.
	RequestID, CorrelationID string
	// Message is what Azure says, in full: to decide by, for Err is shortened. It is not to be shown.
	Message string
	// Err is what came back, for people.
	Err error
}

// Codes of failures for which Azure has no word.
const (
	CodeOutcomeUnknown = "OutcomeUnknown"
	CodeGateClosed     = "GateClosed"
	// CodeResting is that of a request that was not sent, because what it is for has named
	// a Retry-After before.
	CodeResting = "RetryAfter"
	// CodeDeferred is that of a request that Weir does not send before a time.
	CodeDeferred     = "Deferred"
	CodeUnreachable  = "Unreachable"
	CodeUnclassified = "Unclassified"
	// CodeCanceled is Azure's, and an operation's that ended so without a code.
	CodeCanceled = "Canceled"
	CodeShutdown = "Shutdown"
	// CodeNotFound is that of a 404 which names none.
	CodeNotFound = "Not Found"
	// CodeOlderVersion is Azure's for a write with an older api-version than one with which a property was set.
	CodeOlderVersion = "UpdateOnResourceNotAllowedWithApiVersion"
	// CodeParentFailed is Azure's for a write of a part of what is Failed as a whole.
	CodeParentFailed = "ParentResourceIsInFailedState"
)

// The reasons of a 412, a 429, and of requests that never left.
const (
	reasonOvertaken  = "precondition_failed"
	reasonThrottled  = "throttled"
	reasonGateClosed = "gate_closed"
	reasonResting    = "retry_after"
	reasonDeferred   = "deferred"
)

// Deferred returns a fault for what Weir does not ask of Azure before a time.
func Deferred(until time.Time, err error) *Fault {
	return &Fault{Class: Retriable, Reason: reasonDeferred, Code: CodeDeferred, RetryAt: until, Err: err}
}

// Deferred reports whether Weir itself put off a request to Azure. It may be called on nil.
func (f *Fault) Deferred() bool { return f != nil && f.Reason == reasonDeferred }

// Overtaken reports whether a write was refused because what it was to change was written since
// it was read: whatever is guarded by that etag has landed by then, or never will. It may be
// called on nil.
func (f *Fault) Overtaken() bool { return f != nil && f.Reason == reasonOvertaken }

// Throttled reports whether Azure asked for fewer requests. It may be called on nil.
func (f *Fault) Throttled() bool { return f != nil && f.Reason == reasonThrottled }

// Superseded reports whether Azure had accepted a write, and canceled it for one that came after it:
// a read tells whether what it put is there. It may be called on nil.
func (f *Fault) Superseded() bool {
	return f != nil && f.Ended && (strings.Contains(f.Code, "Superseded") || f.Code == CodeCanceled)
}

// Unsent reports whether the request never left, and none of the same call did before. It may be
// called on nil.
func (f *Fault) Unsent() bool {
	return f != nil && !f.Undecided && (f.Reason == reasonGateClosed || f.Reason == reasonResting)
}

// Error returns the message of what came back.
func (f *Fault) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("%s (%s)", f.Code, f.Class)
	}
	return f.Err.Error()
}

// Unwrap returns what came back.
func (f *Fault) Unwrap() error { return f.Err }

// RequestOf returns what Azure calls the request behind an error: that of the outermost Fault in its
// chain which names one, for rooms put their own words around Azure's. Both are empty if none does.
func RequestOf(err error) (requestID, correlationID string) {
	for err != nil {
		f, ok := errors.AsType[*Fault](err)
		if !ok {
			break
		}
		if f.RequestID != "" || f.CorrelationID != "" {
			return f.RequestID, f.CorrelationID
		}
		err = f.Err
	}
	return "", ""
}

// From returns the Fault in err's chain, or a terminal one around err: an error
// that nobody classified is nobody's to retry. It returns nil for nil.
func From(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return Classify(Answer{}, err)
}
