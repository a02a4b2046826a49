// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb/behavior"
)

const (
	// sufficientRounds is conclusive: three equally likely answers agree by chance once in 81 times.
	sufficientRounds = 5
	maxRounds        = 8
	minRounds        = 3
)

// round is two overlapping writes of two pools of a load balancer.
type round struct {
	first, second       Response
	firstEnd, secondEnd Result
	// firstSeen and secondSeen are whether the content was present once Azure had accepted both
	// writes; firstPresent and secondPresent, in the end.
	firstSeen, secondSeen       bool
	firstPresent, secondPresent bool
}

// result returns the result, or the reason that there is none.
func (r round) result() (a behavior.Result, reason string) {
	for _, write := range []struct {
		of  Response
		end Result
	}{{r.second, r.firstEnd}, {r.first, r.secondEnd}} {
		switch {
		case write.of.IsAccepted():
		case write.end.State != succeeded:
			return "", fmt.Sprintf("one write was refused with %s, and the other ended %s", formatResponse(write.of), write.end.State)
		case write.of.Status == statusTooManyRequests && slices.Contains(write.of.Codes, "RetryableErrorDueToAnotherOperation"):
			return behavior.Lock, ""
		case write.of.Status == statusConflict && slices.Contains(write.of.Codes, "AnotherOperationInProgress"):
			return behavior.Conflict, ""
		default:
			return "", "a write was refused for another reason: " + formatResponse(write.of)
		}
	}
	states := [2]string{r.firstEnd.State, r.secondEnd.State}
	switch states {
	case [2]string{canceled, succeeded}:
		return supersedeResult(r.firstSeen, r.firstPresent, r.secondPresent)
	case [2]string{succeeded, canceled}:
		return supersedeResult(r.secondSeen, r.secondPresent, r.firstPresent)
	case [2]string{succeeded, succeeded}:
		if r.firstEnd.RunningAt.After(r.second.At) {
			return "", "both writes ran at a time, and both ended " + succeeded
		}
		return "", "the first write had ended before the second came"
	}
	return "", "the writes ended " + states[0] + " and " + states[1]
}

func supersedeResult(seen, ok, winner bool) (a behavior.Result, reason string) {
	switch {
	case !winner:
		return "", "what the later write put was not there in the end"
	case ok:
		return behavior.Supersede, ""
	case seen:
		return behavior.SupersedeDiscardLate, ""
	}
	return behavior.SupersedeDiscard, ""
}

// roundsResult also reports whether more rounds are needless.
func roundsResult(rounds []round) (a behavior.Result, reason string, enough bool) {
	count := map[behavior.Result]int{}
	counted, last := 0, "no write was under way when another came"
	for _, r := range rounds {
		outcome, reason := r.result()
		if outcome == "" {
			last = reason
			continue
		}
		count[outcome]++
		counted++
	}
	switch {
	case len(count) > 1 && count[behavior.SupersedeDiscard]+count[behavior.SupersedeDiscardLate] > 0:
		return "", "some writes were discarded, others were not: " + formatCounts(count), true
	case len(count) > 1:
		return behavior.Mixed, "", true
	case counted < minRounds:
		return "", fmt.Sprintf("%d of %d rounds were conclusive: %s", counted, len(rounds), last), false
	}
	for only := range count {
		a = only
	}
	return a, "", counted >= sufficientRounds
}

func formatCounts(count map[behavior.Result]int) string {
	var parts []string
	for a, n := range count {
		parts = append(parts, fmt.Sprintf("%d × %s", n, a))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
