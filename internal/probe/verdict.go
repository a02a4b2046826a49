// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/behaviour"
)

// The functions below return an answer, or the reason that there is none.

func ofAddresses(before, sent, after []member) (a behaviour.Answer, reason string) {
	switch {
	case slices.Equal(ips(before), ips(sent)):
		return "", "the write would have changed nothing"
	case slices.Equal(ips(after), ips(sent)):
		return behaviour.Taken, ""
	case slices.Equal(ips(after), ips(before)):
		return behaviour.Ignored, ""
	}
	return "", fmt.Sprintf("afterwards the pool had neither what was there nor what was sent: %s", shownMembers(after))
}

func ofState(before, sent, after string) (a behaviour.Answer, reason string) {
	switch after {
	case sent:
		return behaviour.Taken, ""
	case before:
		return behaviour.Ignored, ""
	case "":
		return "", "afterwards the pool did not show the address"
	}
	return "", fmt.Sprintf("afterwards the admin state was neither %s nor %s", before, sent)
}

func ofNewPool(sent, after []member) (a behaviour.Answer, reason string) {
	switch {
	case len(after) == 0:
		return behaviour.Empty, ""
	case slices.Equal(ips(after), ips(sent)):
		return behaviour.Filled, ""
	}
	return "", "the new pool had other addresses than were sent: " + shownMembers(after)
}

func ofEtag(before, after string) (a behaviour.Answer, reason string) {
	switch {
	case before == "" || after == "":
		return "", "Azure showed no etag"
	case before == after:
		return behaviour.Kept, ""
	}
	return behaviour.Renewed, ""
}

func ofGuard(a Answer) (verdict behaviour.Answer, reason string) {
	switch {
	case a.Status == statusPreconditionFailed:
		return behaviour.Honoured, ""
	case a.took():
		return behaviour.Ignored, ""
	}
	return "", "the write was refused for another reason: " + said(a)
}

// ofRefusal calls taken after a success.
func ofRefusal(a Answer, end End, taken func() (behaviour.Answer, string)) (verdict behaviour.Answer, reason string) {
	switch {
	case a.Status == statusBadRequest:
		return behaviour.Refused, ""
	case !a.took():
		return "", "the write was refused, though not for what it says: " + said(a)
	case end.State != succeeded:
		return "", "the write was accepted and then ended " + end.State
	}
	return taken()
}

func ofChildOfFailed(a Answer) (verdict behaviour.Answer, reason string) {
	switch {
	case a.took():
		return behaviour.Taken, ""
	case a.Status == statusBadRequest && slices.Contains(a.Codes, "ParentResourceIsInFailedState"):
		return behaviour.Refused, ""
	}
	return "", "the write was refused for another reason: " + said(a)
}

func agreed(results []look) (a behaviour.Answer, reason string) {
	for _, l := range results {
		switch {
		case l.answer == "":
			return "", l.at + ": " + l.why
		case a == "":
			a = l.answer
		case a != l.answer:
			return "", fmt.Sprintf("it is not the same everywhere: %s %s, %s %s", results[0].at, a, l.at, l.answer)
		}
	}
	if a == "" {
		return "", "nothing was seen of it"
	}
	return a, ""
}

// look is an answer from one of several places.
type look struct {
	at     string
	answer behaviour.Answer
	why    string
}

func said(a Answer) string {
	return strings.TrimSpace(fmt.Sprint(a.Status, " ", strings.Join(a.Codes, " ")))
}

func shownMembers(list []member) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(ips(list), ", ")
}
