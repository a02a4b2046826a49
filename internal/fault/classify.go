// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Answer describes how an attempt failed, in the terms that the table needs.
type Answer struct {
	// Stopping is true when the lane's own context is done, or the process has lost the
	// lead: whatever came back is about the end of this process.
	Stopping bool
	// Status is the HTTP status of the answer, 0 if there was none.
	Status int
	// Codes are Azure's error code and those of its details, outermost first.
	Codes []string
	// Message is what Azure's error and its details say, outermost first, in full.
	Message string
	// TargetGone is true for a 404 to the pool's own GET or PUT that names the
	// load balancer or the pool; a 404 for anything else is an ordinary error.
	TargetGone bool
	// OperationEnded is true when a long-running operation that Azure had
	// accepted ended as Failed or Canceled.
	OperationEnded bool
	// OutcomeUnknown is true when a write was sent and nothing tells what became
	// of it: a lost answer, a poll that failed, a success that shows something else.
	OutcomeUnknown bool
	// GateClosed is true when the request met a closed local gate and never left.
	GateClosed bool
	// Resting is true when the request never left, because what it is for has answered
	// with a Retry-After before.
	Resting bool
	// Unreachable is true when no server answered a request that changes nothing.
	Unreachable bool
	// MayLand is true if an earlier request of the same write may still land.
	MayLand bool
	// RetryAt is the server's Retry-After, or the gate's time; zero if unknown.
	RetryAt time.Time
	// RequestID and CorrelationID are what Azure calls the request; empty if it named none.
	RequestID, CorrelationID string
}

// Rule is one row of the table. The first that matches decides.
type Rule struct {
	Name  string
	Match func(Answer) bool
	Class Class
	// Reason is the rule's word in metrics.
	Reason string
	Why    string
}

// Rules is the table. Order matters: what is known of the write's fate comes
// before what its status says.
var Rules = []Rule{
	{"lane stopping", func(a Answer) bool { return a.Stopping },
		Shutdown, "shutdown", "the controller stops; the next one starts from what the cluster wants"},
	{"gate closed", func(a Answer) bool { return a.GateClosed },
		Retriable, reasonGateClosed, "a local gate was closed under way; the request never left"},
	{"not asked yet", func(a Answer) bool { return a.Resting },
		Retriable, reasonResting, "the resource wants no call before a time that it named; the request never left"},
	{"operation ended, retriable code", func(a Answer) bool { return a.OperationEnded && retriableEnd(a.Codes) },
		Retriable, "superseded", "another write overtook ours, or Azure asks to come again; a fresh read settles it"},
	{"operation ended, other code", func(a Answer) bool { return a.OperationEnded },
		Terminal, "operation_failed", "Azure worked on the write and refused it"},
	{"outcome unknown", func(a Answer) bool { return a.OutcomeUnknown },
		Retriable, "outcome_unknown", "the write may have landed; the next read tells"},
	{"pool or load balancer gone", func(a Answer) bool { return a.Status == http.StatusNotFound && a.TargetGone },
		Stale, "gone", "there is nothing left to keep level"},
	{"429", func(a Answer) bool { return a.Status == http.StatusTooManyRequests },
		Retriable, reasonThrottled, "Azure throttles or holds a lock; no other layer retries it"},
	{"409", func(a Answer) bool { return a.Status == http.StatusConflict },
		Retriable, "conflict", "somebody else is at work on it; a fresh read settles it"},
	{"412", func(a Answer) bool { return a.Status == http.StatusPreconditionFailed },
		Retriable, reasonOvertaken, "somebody else wrote since our read; a fresh one settles it"},
	{"load balancer failed", func(a Answer) bool { return slices.Contains(a.Codes, CodeParentFailed) },
		Retriable, "parent_failed", "the last write of the load balancer failed; its pools are written after it was written again"},
	{"408, 500, 502, 503, 504", func(a Answer) bool { return slices.Contains(retriedBelow, a.Status) },
		Terminal, "sdk_exhausted", "the SDK has spent its retries on it"},
	{"retriable code", func(a Answer) bool { return slices.ContainsFunc(a.Codes, retriableCode) },
		Retriable, "retriable_code", "the code asks to come again, whatever the status; no other layer retries it"},
	{"no connection for a read", func(a Answer) bool { return a.Unreachable },
		Terminal, "unreachable", "the SDK has spent its retries on it"},
	{"anything else", func(Answer) bool { return true },
		Terminal, "refused", "trying again cannot help"},
}

// retriedBelow are the statuses that the API call layer retries.
var retriedBelow = []int{
	http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// retriableEnd reports whether the end of an operation asks for another try. One that was
// canceled, and gives no other code, was overtaken.
func retriableEnd(codes []string) bool {
	return slices.ContainsFunc(codes, retriableCode) || len(codes) == 1 && codes[0] == CodeCanceled
}

// retriableCodes ask for another try, as the code of an answer or of the end of an operation, or among
// the details of either.
var retriableCodes = []string{
	"AnotherOperationInProgress",
	"Conflict",               // a concurrent request, by the compute provider
	"InternalExecutionError", // documented as: please retry later
	"OperationPreempted",     // the compute provider's word for superseded
	"ReferencedResourceNotProvisioned",
	"TooManyRequests",
	CodeParentFailed,
}

// retriableCode reports whether a code asks for another try.
func retriableCode(code string) bool {
	return slices.Contains(retriableCodes, code) ||
		strings.Contains(code, "Superseded") ||
		strings.HasPrefix(code, "RetryableError") ||
		strings.HasPrefix(code, "Precondition") ||
		strings.HasSuffix(code, "RequestsThrottled")
}

// Classify looks the answer up in Rules and wraps err, which may be nil.
func Classify(a Answer, err error) *Fault {
	for _, rule := range Rules {
		if rule.Match(a) {
			return &Fault{
				Class: rule.Class, Reason: rule.Reason, Code: code(a), RetryAt: a.RetryAt,
				Undecided: undecided(a), Ended: a.OperationEnded,
				RequestID: a.RequestID, CorrelationID: a.CorrelationID, Message: a.Message, Err: err,
			}
		}
	}
	panic("fault: the last rule matches everything")
}

// undecided reports whether a write may have landed, or land later, all the same: no
// answer tells, or one of a server that may have passed it on.
func undecided(a Answer) bool {
	return a.MayLand || !a.OperationEnded && (a.OutcomeUnknown || slices.Contains(retriedBelow, a.Status))
}

// code picks the word for metrics and messages. The innermost code of Azure says
// most: RetryableError tells less than RetryableErrorDueToAnotherOperation.
func code(a Answer) string {
	switch {
	case a.Stopping:
		return CodeShutdown
	case a.GateClosed:
		return CodeGateClosed
	case a.Resting:
		return CodeResting
	case a.OutcomeUnknown && !a.OperationEnded:
		return CodeOutcomeUnknown
	case len(a.Codes) > 0:
		return a.Codes[len(a.Codes)-1]
	case a.Unreachable:
		return CodeUnreachable
	case http.StatusText(a.Status) != "":
		return http.StatusText(a.Status)
	case a.Status != 0:
		return "HTTP " + strconv.Itoa(a.Status)
	}
	return CodeUnclassified
}
