// SPDX-License-Identifier: Apache-2.0

// Package armerror classifies failed Azure requests: which retry layer owns a failure, and when to
// retry. Adapters describe a failure as an [Failure]; Classify converts it.
package armerror

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
	// MayBeApplied is set if the write may still take effect.
	MayBeApplied bool
	// OperationFailed is set if an accepted write failed: the shown content may not be in effect.
	OperationFailed bool
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
	// CodeRetryAfter means not sent because of an earlier Retry-After.
	CodeRetryAfter = "RetryAfter"
	// CodeDeferred means that Weir postponed the request.
	CodeDeferred     = "Deferred"
	CodeUnreachable  = "Unreachable"
	CodeUnclassified = "Unclassified"
	// CodeCanceled is Azure's; it is also used for a canceled operation without a code.
	CodeCanceled = "Canceled"
	CodeShutdown = "Shutdown"
	// CodeNotFound is used for a 404 without a code.
	CodeNotFound = "Not Found"
	// CodeOldAPIVersion is Azure's, for a write with an older api-version than the one that set a
	// property.
	CodeOldAPIVersion = "UpdateOnResourceNotAllowedWithApiVersion"
	// CodeParentFailed is Azure's, for a write of a child of a Failed resource.
	CodeParentFailed = "ParentResourceIsInFailedState"
)

const (
	reasonPreconditionFailed = "precondition_failed"
	reasonThrottled          = "throttled"
	reasonGateClosed         = "gate_closed"
	reasonRetryAfter         = "retry_after"
	reasonDeferred           = "deferred"
	reasonUnauthenticated    = "unauthenticated"
)

// IsUnauthenticated reports whether Azure rejected the sign-in, whatever the request.
func (f *Fault) IsUnauthenticated() bool { return f.Reason == reasonUnauthenticated }

// NewDeferred returns a fault for a request that Weir postpones.
func NewDeferred(until time.Time, err error) *Fault {
	return &Fault{Class: Retriable, Reason: reasonDeferred, Code: CodeDeferred, RetryAt: until, Err: err}
}

// IsDeferred reports whether Weir postponed the request. f may be nil.
func (f *Fault) IsDeferred() bool { return f != nil && f.Reason == reasonDeferred }

// IsPreconditionFailed reports a write rejected because of an outdated etag. Earlier writes with that etag
// have taken effect by then, or never will. f may be nil.
func (f *Fault) IsPreconditionFailed() bool { return f != nil && f.Reason == reasonPreconditionFailed }

// IsThrottled reports a 429. f may be nil.
func (f *Fault) IsThrottled() bool { return f != nil && f.Reason == reasonThrottled }

// IsSuperseded reports whether Azure canceled an accepted write in favor of a later one; its content
// may be present. f may be nil.
func (f *Fault) IsSuperseded() bool {
	return f != nil && f.OperationFailed && (strings.Contains(f.Code, "Superseded") || f.Code == CodeCanceled)
}

// IsNotSent reports whether no request of the call was sent. f may be nil.
func (f *Fault) IsNotSent() bool {
	return f != nil && !f.MayBeApplied && (f.Reason == reasonGateClosed || f.Reason == reasonRetryAfter)
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

// RequestIDs returns Azure's request IDs from the outermost Fault in err's chain that has any.
func RequestIDs(err error) (requestID, correlationID string) {
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

// FromError returns the Fault in err's chain, or a terminal one, because unclassified errors are not
// retried. It returns nil for nil.
func FromError(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return Classify(Failure{}, err)
}
