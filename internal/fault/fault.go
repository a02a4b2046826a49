// SPDX-License-Identifier: Apache-2.0

// Package fault classifies failed Azure requests: which retry layer owns a failure, and when to
// retry. Adapters describe a failure as an [Answer]; Classify converts it.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Class is the handling of a failed attempt.
type Class string

const (
	// Stale means that the pool or its load balancer does not exist: drop silently.
	Stale Class = "Stale"
	// Retriable means that the pool worker retries within its budget.
	Retriable Class = "Retriable"
	// Terminal means that a retry is useless, or was already made below.
	Terminal Class = "Terminal"
	// Shutdown means that the controller is stopping: drop without an event.
	Shutdown Class = "Shutdown"
)

// Fault is a classified failure.
type Fault struct {
	Class  Class
	Reason string
	// Code is for messages: Azure's error code or one of the Code constants.
	Code    string
	RetryAt time.Time
	// Undecided is set if the write may still take effect.
	Undecided bool
	// Ended is set if an accepted write failed: the shown content may not be in effect.
	Ended bool
	// RequestID and CorrelationID are Azure's, for support; may be empty.
	RequestID, CorrelationID string
	// Message is Azure's complete message, for decisions only. Never show it.
	Message string
	Err     error
}

// Codes of failures without an Azure code.
const (
	CodeOutcomeUnknown = "OutcomeUnknown"
	CodeGateClosed     = "GateClosed"
	// CodeResting means not sent because of an earlier Retry-After.
	CodeResting = "RetryAfter"
	// CodeDeferred means that Weir postponed the request.
	CodeDeferred     = "Deferred"
	CodeUnreachable  = "Unreachable"
	CodeUnclassified = "Unclassified"
	// CodeCanceled is Azure's; it is also used for a canceled operation without a code.
	CodeCanceled = "Canceled"
	CodeShutdown = "Shutdown"
	// CodeNotFound is used for a 404 without a code.
	CodeNotFound = "Not Found"
	// CodeOlderVersion is Azure's, for a write with an older api-version than the one that set a
	// property.
	CodeOlderVersion = "UpdateOnResourceNotAllowedWithApiVersion"
	// CodeParentFailed is Azure's, for a write of a child of a Failed resource.
	CodeParentFailed = "ParentResourceIsInFailedState"
)

const (
	reasonOvertaken  = "precondition_failed"
	reasonThrottled  = "throttled"
	reasonGateClosed = "gate_closed"
	reasonResting    = "retry_after"
	reasonDeferred   = "deferred"
)

// Deferred returns a fault for a request that Weir postpones.
func Deferred(until time.Time, err error) *Fault {
	return &Fault{Class: Retriable, Reason: reasonDeferred, Code: CodeDeferred, RetryAt: until, Err: err}
}

// Deferred reports whether Weir postponed the request. f may be nil.
func (f *Fault) Deferred() bool { return f != nil && f.Reason == reasonDeferred }

// Overtaken reports a write rejected because of an outdated etag. Earlier writes with that etag
// have taken effect by then, or never will. f may be nil.
func (f *Fault) Overtaken() bool { return f != nil && f.Reason == reasonOvertaken }

// Throttled reports a 429. f may be nil.
func (f *Fault) Throttled() bool { return f != nil && f.Reason == reasonThrottled }

// Superseded reports whether Azure canceled an accepted write in favor of a later one; its content
// may be present. f may be nil.
func (f *Fault) Superseded() bool {
	return f != nil && f.Ended && (strings.Contains(f.Code, "Superseded") || f.Code == CodeCanceled)
}

// Unsent reports whether no request of the call was sent. f may be nil.
func (f *Fault) Unsent() bool {
	return f != nil && !f.Undecided && (f.Reason == reasonGateClosed || f.Reason == reasonResting)
}

// Error returns the message of Err.
func (f *Fault) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("%s (%s)", f.Code, f.Class)
	}
	return f.Err.Error()
}

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }

// RequestOf returns Azure's request IDs from the outermost Fault in err's chain that has any.
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

// From returns the Fault in err's chain, or a terminal one, because unclassified errors are not
// retried. It returns nil for nil.
func From(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return Classify(Answer{}, err)
}
