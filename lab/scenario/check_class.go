// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/diff"
)

func checkOutcomes(s *Stage) []string {
	var broken []string
	for _, r := range s.history.reports {
		if want, reason := expectedOutcome(r); want != "" && r.Outcome != want {
			broken = append(broken, fmt.Sprintf("%s: %s is %s, and has to be %s", r.Pool.Name, reason, r.Outcome, want))
		}
		named := r.Fault != nil && slices.Contains(notFoundCodes, r.Fault.Code)
		if r.Outcome == diff.Stale && (r.last.status != http.StatusNotFound || r.last.fromFault && !named) {
			broken = append(broken, fmt.Sprintf("%s is taken for gone after %d to a %s, and is there", r.Pool.Name, r.last.status, r.last.kind))
		}
		if follows := r.last.kind == "poll" || r.last.kind == "result" || r.last.kind == http.MethodPut && r.last.status < 300; follows &&
			r.Fault != nil && r.Fault.Code == armerror.CodeGateClosed && r.last.status != 0 {
			broken = append(broken, r.Pool.Name+": a closed gate ends the wait for a write that Azure has accepted")
		}
		own := !r.last.at.Before(r.At.Add(-r.Duration)) // otherwise it belongs to the previous attempt
		if own && r.last.status == http.StatusTooManyRequests && (r.last.kind == "poll" || r.last.kind == "result") && canWait(r) {
			broken = append(broken, fmt.Sprintf("%s: a 429 to a %s is not waited out", r.Pool.Name, r.last.kind))
		}
	}
	return broken
}

// attemptTimeout is the timeout of an attempt.
const attemptTimeout = 10 * time.Minute

// canWait reports whether the attempt could wait for Azure's Retry-After.
func canWait(r attemptReport) bool {
	elapsed := r.Duration
	if r.Fault != nil && r.Fault.RetryAt.After(r.At) {
		elapsed += r.Fault.RetryAt.Sub(r.At)
	}
	return elapsed < attemptTimeout
}

// notFoundCodes are the codes of a 404 that can be about the pool.
var notFoundCodes = []string{"NotFound", "ResourceNotFound", "ParentResourceNotFound", "ResourceGroupNotFound"}

// The statuses that the updater retries, and those that are terminal or already retried by the SDK.
var (
	retriedStatuses  = []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusTooManyRequests}
	terminalStatuses = []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
)

// expectedOutcome restates the classification of a failed attempt independently. want is empty if it has
// none; why is the cause.
func expectedOutcome(r attemptReport) (want diff.Outcome, reason string) {
	a := r.last
	reason = fmt.Sprintf("%d to a %s", a.status, a.kind)
	following := a.kind == "poll" || a.kind == "result"
	switch {
	case r.Duration >= attemptTimeout/2: // a timeout ended the last call; overlapping writes are sent for half of it
		return "", ""
	case r.Fault != nil && r.Fault.Code == armerror.CodeParentFailed: // the load balancer's next write may repair it
		return diff.Retriable, reason
	case r.Fault == nil || r.Outcome == diff.Postponed || r.Fault.Code == armerror.CodeGateClosed || r.Fault.Code == armerror.CodeRetryAfter:
		return "", ""
	case strings.Contains(r.Fault.Code, "Superseded") || strings.HasPrefix(r.Fault.Code, "RetryableError"):
		return diff.Retriable, r.Fault.Code
	case following && a.status >= 400:
		return diff.Retriable, reason
	case following || a.kind == "":
		return "", ""
	case slices.Contains(retriedStatuses, a.status):
		return diff.Retriable, reason
	case slices.Contains(terminalStatuses, a.status):
		return diff.Terminal, reason
	case a.status == 0 && a.kind == http.MethodPut:
		return diff.Retriable, "no answer to a PUT"
	case a.status == 0:
		return diff.Terminal, "no answer to a GET"
	}
	return "", ""
}
