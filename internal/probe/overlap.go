// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/behaviour"
)

const (
	// enoughRounds settle the question: with answers by chance, of three, all are alike once
	// in 81 times.
	enoughRounds = 5
	// mostRounds bound those that met no running write, too.
	mostRounds = 8
	// fewestRounds say something, if they all say the same.
	fewestRounds = 3
)

// round is one write that ran, and one that came meanwhile, on two pools of a load balancer.
type round struct {
	first, second       Answer
	firstEnd, secondEnd End
	// firstSeen and secondSeen say whether what they put was there when Azure had taken both, and
	// firstThere and secondThere whether it is there in the end.
	firstSeen, secondSeen   bool
	firstThere, secondThere bool
}

// outcome says what the second write met; none with the reason why nothing can be said.
func (r round) outcome() (a behaviour.Answer, why string) {
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

func overtaken(seen, there, winner bool) (a behaviour.Answer, why string) {
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

// ofRounds is the verdict on all rounds so far, and whether more would change nothing.
func ofRounds(rounds []round) (a behaviour.Answer, why string, enough bool) {
	count := map[behaviour.Answer]int{}
	counted, last := 0, "no write was under way when another came"
	for _, r := range rounds {
		outcome, why := r.outcome()
		if outcome == "" {
			last = why
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
