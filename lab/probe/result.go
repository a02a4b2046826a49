// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb/behavior"
)

// The functions below return an answer, or the reason that there is none.

func addressesResult(before, sent, after []member) (a behavior.Result, reason string) {
	switch {
	case slices.Equal(memberIPs(before), memberIPs(sent)):
		return "", "the write would have changed nothing"
	case slices.Equal(memberIPs(after), memberIPs(sent)):
		return behavior.Accepted, ""
	case slices.Equal(memberIPs(after), memberIPs(before)):
		return behavior.Ignored, ""
	}
	return "", fmt.Sprintf("afterwards the pool had neither what was there nor what was sent: %s", formatMembers(after))
}

func stateResult(before, sent, after string) (a behavior.Result, reason string) {
	switch after {
	case sent:
		return behavior.Accepted, ""
	case before:
		return behavior.Ignored, ""
	case "":
		return "", "afterwards the pool did not show the address"
	}
	return "", fmt.Sprintf("afterwards the admin state was neither %s nor %s", before, sent)
}

func newPoolResult(sent, after []member) (a behavior.Result, reason string) {
	switch {
	case len(after) == 0:
		return behavior.Empty, ""
	case slices.Equal(memberIPs(after), memberIPs(sent)):
		return behavior.Populated, ""
	}
	return "", "the new pool had other addresses than were sent: " + formatMembers(after)
}

func etagResult(before, after string) (a behavior.Result, reason string) {
	switch {
	case before == "" || after == "":
		return "", "Azure showed no etag"
	case before == after:
		return behavior.Unchanged, ""
	}
	return behavior.Changed, ""
}

func guardResult(a Response) (verdict behavior.Result, reason string) {
	switch {
	case a.Status == statusPreconditionFailed:
		return behavior.Enforced, ""
	case a.IsAccepted():
		return behavior.Ignored, ""
	}
	return "", "the write was refused for another reason: " + formatResponse(a)
}

// rejectionResult calls taken after a success.
func rejectionResult(a Response, end Result, taken func() (behavior.Result, string)) (verdict behavior.Result, reason string) {
	switch {
	case a.Status == statusBadRequest:
		return behavior.Rejected, ""
	case !a.IsAccepted():
		return "", "the write was refused, though not for its content: " + formatResponse(a)
	case end.State != succeeded:
		return "", "the write was accepted and then ended " + end.State
	}
	return taken()
}

// labelResult compares the label that Azure shows with the one sent.
func labelResult(w writeResult, sent, after string) (a behavior.Result, reason string) {
	switch {
	case w.Status == statusBadRequest && slices.Contains(w.Response.Codes, "DnsRecordInUse"):
		return behavior.Rejected, ""
	case !w.IsAccepted():
		return "", "the write was refused for another reason: " + formatResponse(w.Response)
	case slices.Contains(w.Result.Codes, "DnsRecordInUse"):
		return behavior.Rejected, ""
	case w.State != succeeded:
		return "", "the write was accepted and then ended " + w.State
	case after != sent:
		return "", fmt.Sprintf("the write succeeded, and then the label was %q", after)
	}
	return behavior.Accepted, ""
}

func failedParentResult(a Response) (verdict behavior.Result, reason string) {
	switch {
	case a.IsAccepted():
		return behavior.Accepted, ""
	case a.Status == statusBadRequest && slices.Contains(a.Codes, "ParentResourceIsInFailedState"):
		return behavior.Rejected, ""
	}
	return "", "the write was refused for another reason: " + formatResponse(a)
}

func commonResult(results []placedResult) (a behavior.Result, reason string) {
	for _, l := range results {
		switch {
		case l.result == "":
			return "", l.at + ": " + l.reason
		case a == "":
			a = l.result
		case a != l.result:
			return "", fmt.Sprintf("it is not the same everywhere: %s %s, %s %s", results[0].at, a, l.at, l.result)
		}
	}
	if a == "" {
		return "", "nothing was seen of it"
	}
	return a, ""
}

// placedResult is an answer from one of several places.
type placedResult struct {
	at     string
	result behavior.Result
	reason string
}

func formatResponse(a Response) string {
	return strings.TrimSpace(fmt.Sprint(a.Status, " ", strings.Join(a.Codes, " ")))
}

func formatMembers(list []member) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(memberIPs(list), ", ")
}
