// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/behaviour"
)

const (
	// enoughRounds is conclusive: three equally likely answers agree by chance once in 81 times.
	enoughRounds = 5
	mostRounds   = 8
	fewestRounds = 3
)

// round is two overlapping writes of two pools of a load balancer.
type round struct {
	first, second       Answer
	firstEnd, secondEnd End
	// firstSeen and secondSeen are whether the content was present once Azure had accepted both
	// writes; firstThere and secondThere, in the end.
	firstSeen, secondSeen   bool
	firstThere, secondThere bool
}

// outcome returns the result, or the reason that there is none.
func (r round) outcome() (a behaviour.Answer, reason string) {
	for _, one := range []struct {
		of  Answer
		end End
	}{{r.second, r.firstEnd}, {r.first, r.secondEnd}} {
		switch {
		case one.of.took():
		case one.end.State != succeeded:
			return "", fmt.Sprintf("one write was refused with %s, and the other ended %s", said(one.of), one.end.State)
		case one.of.Status == statusTooManyRequests && slices.Contains(one.of.Codes, "RetryableErrorDueToAnotherOperation"):
			return behaviour.Lock, ""
		case one.of.Status == statusConflict && slices.Contains(one.of.Codes, "AnotherOperationInProgress"):
			return behaviour.Conflict, ""
		default:
			return "", "a write was refused for another reason: " + said(one.of)
		}
	}
	states := [2]string{r.firstEnd.State, r.secondEnd.State}
	switch states {
	case [2]string{canceled, succeeded}:
		return overtaken(r.firstSeen, r.firstThere, r.secondThere)
	case [2]string{succeeded, canceled}:
		return overtaken(r.secondSeen, r.secondThere, r.firstThere)
	case [2]string{succeeded, succeeded}:
		if r.firstEnd.Running.After(r.second.At) {
			return "", "both writes ran at a time, and both ended " + succeeded
		}
		return "", "the first write had ended before the second came"
	}
	return "", "the writes ended " + states[0] + " and " + states[1]
}

func overtaken(seen, there, winner bool) (a behaviour.Answer, reason string) {
	switch {
	case !winner:
		return "", "what the later write put was not there in the end"
	case there:
		return behaviour.Supersede, ""
	case seen:
		return behaviour.SupersedeDiscardLate, ""
	}
	return behaviour.SupersedeDiscard, ""
}

// ofRounds also reports whether more rounds are needless.
func ofRounds(rounds []round) (a behaviour.Answer, reason string, enough bool) {
	count := map[behaviour.Answer]int{}
	counted, last := 0, "no write was under way when another came"
	for _, r := range rounds {
		outcome, reason := r.outcome()
		if outcome == "" {
			last = reason
			continue
		}
		count[outcome]++
		counted++
	}
	switch {
	case len(count) > 1 && count[behaviour.SupersedeDiscard]+count[behaviour.SupersedeDiscardLate] > 0:
		return "", "some writes were discarded, others were not: " + tally(count), true
	case len(count) > 1:
		return behaviour.Mixed, "", true
	case counted < fewestRounds:
		return "", fmt.Sprintf("%d of %d rounds tell: %s", counted, len(rounds), last), false
	}
	for only := range count {
		a = only
	}
	return a, "", counted >= enoughRounds
}

func tally(count map[behaviour.Answer]int) string {
	var parts []string
	for a, n := range count {
		parts = append(parts, fmt.Sprintf("%d × %s", n, a))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
