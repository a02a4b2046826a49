// SPDX-License-Identifier: Apache-2.0

package armerror

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Failure describes how an attempt failed.
type Failure struct {
	// IsShutdown is set after the end of the worker's context or of leadership; other fields do not
	// matter.
	IsShutdown bool
	// Status is 0 without a response.
	Status int
	// Codes are outermost first, as the messages in Message.
	Codes   []string
	Message string
	// TargetMissing is set for a 404 that names the load balancer or the pool, to the pool's own GET
	// or PUT.
	TargetMissing bool
	// OperationFailed is set when an accepted operation failed or was canceled.
	OperationFailed bool
	// ResultUnknown is set for a write without a response, with a failed poll, or with other
	// content than written.
	ResultUnknown bool
	// GateClosed is set when a local gate blocked the request.
	GateClosed bool
	// RetryAfterPending is set when an earlier Retry-After blocked the request.
	RetryAfterPending bool
	// NoResponse is set when a read got no response.
	NoResponse bool
	// MayBeApplied is set if an earlier request of the same write may still take effect.
	MayBeApplied bool
	// RetryAt is the server's Retry-After or the end of the gate.
	RetryAt                  time.Time
	RequestID, CorrelationID string
}

// Rule is one row of the table; the first match applies.
type Rule struct {
	Name        string
	Match       func(Failure) bool
	Class       Class
	Reason      string
	Description string
}

// Rules about the outcome of a write precede those about its status.
var Rules = []Rule{
	{"worker is stopping", func(a Failure) bool { return a.IsShutdown },
		Shutdown, "shutdown", "the controller stops; the next one starts from what the cluster wants"},
	{"gate closed", func(a Failure) bool { return a.GateClosed },
		Retriable, reasonGateClosed, "a local gate was closed under way; the request never left"},
	{"not read yet", func(a Failure) bool { return a.RetryAfterPending },
		Retriable, reasonRetryAfter, "the resource wants no call before a time that it named; the request never left"},
	{"operation ended, retriable code", func(a Failure) bool { return a.OperationFailed && isRetriableEnd(a.Codes) },
		Retriable, "superseded", "another write superseded this one, or Azure requested a retry; the next attempt reads again"},
	{"operation ended, other code", func(a Failure) bool { return a.OperationFailed },
		Terminal, "operation_failed", "Azure worked on the write and refused it"},
	{"outcome unknown", func(a Failure) bool { return a.ResultUnknown },
		Retriable, "outcome_unknown", "the write may have been applied; the next attempt reads again"},
	{"the pool or load balancer does not exist", func(a Failure) bool { return a.Status == http.StatusNotFound && a.TargetMissing },
		Stale, "gone", "there is nothing left to update"},
	{"429", func(a Failure) bool { return a.Status == http.StatusTooManyRequests },
		Retriable, reasonThrottled, "Azure throttles or holds a lock; no other layer retries it"},
	{"409", func(a Failure) bool { return a.Status == http.StatusConflict },
		Retriable, "conflict", "another client is writing it; the next attempt reads again"},
	{"412", func(a Failure) bool { return a.Status == http.StatusPreconditionFailed },
		Retriable, reasonPreconditionFailed, "another client wrote it since the read; the next attempt reads again"},
	{"load balancer failed", func(a Failure) bool { return slices.Contains(a.Codes, CodeParentFailed) },
		Retriable, "parent_failed", "the last write of the load balancer failed; its pools are written after it was written again"},
	{"408, 500, 502, 503, 504", func(a Failure) bool { return slices.Contains(sdkRetryStatuses, a.Status) },
		Terminal, "sdk_exhausted", "the SDK has spent its retries on it"},
	{"401", func(a Failure) bool { return a.Status == http.StatusUnauthorized },
		Terminal, reasonUnauthenticated, "Azure rejected Weir's sign-in, whatever the request"},
	{"retriable code", func(a Failure) bool { return slices.ContainsFunc(a.Codes, isRetriableCode) },
		Retriable, "retriable_code", "the error code requests a retry, whatever the status; no other layer retries it"},
	{"no connection for a read", func(a Failure) bool { return a.NoResponse },
		Terminal, "unreachable", "the SDK has spent its retries on it"},
	{"anything else", func(Failure) bool { return true },
		Terminal, "refused", "trying again cannot help"},
}

var sdkRetryStatuses = []int{
	http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// isRetriableEnd treats Canceled without another code as superseded.
func isRetriableEnd(codes []string) bool {
	return slices.ContainsFunc(codes, isRetriableCode) || len(codes) == 1 && codes[0] == CodeCanceled
}

// retriableCodes apply to responses and to operations, alone or among the details.
var retriableCodes = []string{
	"AnotherOperationInProgress",
	"Conflict",               // concurrent request (compute provider)
	"InternalExecutionError", // documented as: please retry later
	"OperationPreempted",     // superseded (compute provider)
	"ReferencedResourceNotProvisioned",
	"TooManyRequests",
	CodeParentFailed,
}

func isRetriableCode(code string) bool {
	return slices.Contains(retriableCodes, code) ||
		strings.Contains(code, "Superseded") ||
		strings.HasPrefix(code, "RetryableError") ||
		strings.HasPrefix(code, "Precondition") ||
		strings.HasSuffix(code, "RequestsThrottled")
}

// Classify applies Rules and wraps err, which may be nil.
func Classify(a Failure, err error) *Fault {
	for _, rule := range Rules {
		if rule.Match(a) {
			return &Fault{
				Class: rule.Class, Reason: rule.Reason, Code: faultCode(a), RetryAt: a.RetryAt,
				MayBeApplied: mayBeApplied(a), OperationFailed: a.OperationFailed,
				RequestID: a.RequestID, CorrelationID: a.CorrelationID, Message: a.Message, Err: err,
			}
		}
	}
	panic("fault: the last rule matches everything")
}

// mayBeApplied reports whether a write may still take effect: its outcome is unknown, or a server may
// have forwarded it before it failed.
func mayBeApplied(a Failure) bool {
	return a.MayBeApplied || !a.OperationFailed && (a.ResultUnknown || slices.Contains(sdkRetryStatuses, a.Status))
}

// faultCode returns the innermost code, the most specific one.
func faultCode(a Failure) string {
	switch {
	case a.IsShutdown:
		return CodeShutdown
	case a.GateClosed:
		return CodeGateClosed
	case a.RetryAfterPending:
		return CodeRetryAfter
	case a.ResultUnknown && !a.OperationFailed:
		return CodeOutcomeUnknown
	case len(a.Codes) > 0:
		return a.Codes[len(a.Codes)-1]
	case a.NoResponse:
		return CodeUnreachable
	case http.StatusText(a.Status) != "":
		return http.StatusText(a.Status)
	case a.Status != 0:
		return "HTTP " + strconv.Itoa(a.Status)
	}
	return CodeUnclassified
}
