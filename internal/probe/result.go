// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/behaviour"
)

// The functions below return an answer, or the reason that there is none.

func addressesResult(before, sent, after []member) (a behaviour.Result, reason string) {
	switch {
	case slices.Equal(memberIPs(before), memberIPs(sent)):
		return "", "the write would have changed nothing"
	case slices.Equal(memberIPs(after), memberIPs(sent)):
		return behaviour.Accepted, ""
	case slices.Equal(memberIPs(after), memberIPs(before)):
		return behaviour.Ignored, ""
	}
	return "", fmt.Sprintf("afterwards the pool had neither what was there nor what was sent: %s", formatMembers(after))
}

func stateResult(before, sent, after string) (a behaviour.Result, reason string) {
	switch after {
	case sent:
		return behaviour.Accepted, ""
	case before:
		return behaviour.Ignored, ""
	case "":
		return "", "afterwards the pool did not show the address"
	}
	return "", fmt.Sprintf("afterwards the admin state was neither %s nor %s", before, sent)
}

func newPoolResult(sent, after []member) (a behaviour.Result, reason string) {
	switch {
	case len(after) == 0:
		return behaviour.Empty, ""
	case slices.Equal(memberIPs(after), memberIPs(sent)):
		return behaviour.Populated, ""
	}
	return "", "the new pool had other addresses than were sent: " + formatMembers(after)
}

func etagResult(before, after string) (a behaviour.Result, reason string) {
	switch {
	case before == "" || after == "":
		return "", "Azure showed no etag"
	case before == after:
		return behaviour.Unchanged, ""
	}
	return behaviour.Changed, ""
}

func guardResult(a Response) (verdict behaviour.Result, reason string) {
	switch {
	case a.Status == statusPreconditionFailed:
		return behaviour.Enforced, ""
	case a.isAccepted():
		return behaviour.Ignored, ""
	}
	return "", "the write was refused for another reason: " + formatResponse(a)
}

// rejectionResult calls taken after a success.
func rejectionResult(a Response, end Result, taken func() (behaviour.Result, string)) (verdict behaviour.Result, reason string) {
	switch {
	case a.Status == statusBadRequest:
		return behaviour.Rejected, ""
	case !a.isAccepted():
		return "", "the write was refused, though not for what it says: " + formatResponse(a)
	case end.State != succeeded:
		return "", "the write was accepted and then ended " + end.State
	}
	return taken()
}

func failedParentResult(a Response) (verdict behaviour.Result, reason string) {
	switch {
	case a.isAccepted():
		return behaviour.Accepted, ""
	case a.Status == statusBadRequest && slices.Contains(a.Codes, "ParentResourceIsInFailedState"):
		return behaviour.Rejected, ""
	}
	return "", "the write was refused for another reason: " + formatResponse(a)
}

func commonResult(results []placedResult) (a behaviour.Result, reason string) {
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
	result behaviour.Result
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
