// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb/behavior"
)

func at(ips ...string) []member {
	var list []member
	for _, ip := range ips {
		list = append(list, member{ip: ip})
	}
	return list
}

func TestOfAddresses(t *testing.T) {
	for _, row := range []struct {
		before, sent, after []member
		want                behavior.Result
		reason              string
	}{
		{at("a", "b"), at("a", "c"), at("c", "a"), behavior.Accepted, ""},
		{at("a", "b"), at("a", "c"), at("b", "a"), behavior.Ignored, ""},
		{at("a", "b"), at("a", "c"), at("a"), "", "neither"},
		{at("a", "b"), at("a", "c"), at("a", "b", "c"), "", "neither"},
		{at("a", "b"), at("a", "c"), nil, "", "neither"},
		{at("a", "b"), at("b", "a"), at("a", "b"), "", "changed nothing"},
	} {
		got, message := addressesResult(row.before, row.sent, row.after)
		if got != row.want || !strings.Contains(message, row.reason) || (got == "") == (message == "") {
			t.Errorf("%v: got %q, %q", row, got, message)
		}
	}
}

func TestOfTheRest(t *testing.T) {
	refused := func(status int, codes ...string) Response { return Response{Status: status, Codes: codes} }
	down := func() (behavior.Result, string) { return stateResult("None", "Down", "Down") }
	for name, row := range map[string]struct {
		of   func() (behavior.Result, string)
		want behavior.Result
	}{
		"a state is taken":   {func() (behavior.Result, string) { return stateResult("Down", "None", "None") }, behavior.Accepted},
		"a state is ignored": {func() (behavior.Result, string) { return stateResult("Down", "None", "Down") }, behavior.Ignored},
		"a label is shared": {func() (behavior.Result, string) {
			return labelResult(writeResult{Response{Status: 201}, Result{State: succeeded}}, "l", "l")
		}, behavior.Accepted},
		"a label is left out": {func() (behavior.Result, string) {
			return labelResult(writeResult{Response{Status: 201}, Result{State: succeeded}}, "l", "")
		}, ""},
		"a label is in use": {func() (behavior.Result, string) {
			return labelResult(writeResult{Response: refused(400, "DnsRecordInUse")}, "l", "")
		}, behavior.Rejected},
		"a label is refused late": {func() (behavior.Result, string) {
			return labelResult(writeResult{Response{Status: 201}, Result{State: failed, Codes: []string{"DnsRecordInUse"}}}, "l", "")
		}, behavior.Rejected},
		"a label ends Failed": {func() (behavior.Result, string) {
			return labelResult(writeResult{Response{Status: 201}, Result{State: failed}}, "l", "l")
		}, ""},
		"a label meets a quota": {func() (behavior.Result, string) {
			return labelResult(writeResult{Response: refused(400, "PublicIPCountLimitReached")}, "l", "")
		}, ""},
		"a state is another":    {func() (behavior.Result, string) { return stateResult("Down", "None", "Up") }, ""},
		"the address is gone":   {func() (behavior.Result, string) { return stateResult("Down", "None", "") }, ""},
		"a new pool is empty":   {func() (behavior.Result, string) { return newPoolResult(at("a"), nil) }, behavior.Empty},
		"a new pool is filled":  {func() (behavior.Result, string) { return newPoolResult(at("a"), at("a")) }, behavior.Populated},
		"a new pool has others": {func() (behavior.Result, string) { return newPoolResult(at("a"), at("b")) }, ""},
		"an etag is kept":       {func() (behavior.Result, string) { return etagResult("1", "1") }, behavior.Unchanged},
		"an etag is renewed":    {func() (behavior.Result, string) { return etagResult("1", "2") }, behavior.Changed},
		"no etag":               {func() (behavior.Result, string) { return etagResult("", "2") }, ""},
		"a guard is honoured":   {func() (behavior.Result, string) { return guardResult(refused(412)) }, behavior.Enforced},
		"a guard is ignored":    {func() (behavior.Result, string) { return guardResult(Response{Status: 200}) }, behavior.Ignored},
		"a guard meets a lock":  {func() (behavior.Result, string) { return guardResult(refused(409, "Conflict")) }, ""},
		"Down is refused":       {func() (behavior.Result, string) { return rejectionResult(refused(400, "No"), Result{}, down) }, behavior.Rejected},
		"Down is forbidden":     {func() (behavior.Result, string) { return rejectionResult(refused(403, "No"), Result{}, down) }, ""},
		"Down fails later": {func() (behavior.Result, string) {
			return rejectionResult(Response{Status: 200}, Result{State: failed}, down)
		}, ""},
		"Down is taken": {func() (behavior.Result, string) {
			return rejectionResult(Response{Status: 200}, Result{State: succeeded}, down)
		}, behavior.Accepted},
		"a child of Failed is taken": {func() (behavior.Result, string) { return failedParentResult(Response{Status: 201}) }, behavior.Accepted},
		"a child of Failed is refused": {func() (behavior.Result, string) {
			return failedParentResult(refused(400, "ParentResourceIsInFailedState"))
		}, behavior.Rejected},
		"a child of Failed is invalid": {func() (behavior.Result, string) { return failedParentResult(refused(400, "InvalidRequest")) }, ""},
		"two agree": {func() (behavior.Result, string) {
			return commonResult([]placedResult{{"a", "kept", ""}, {"b", "kept", ""}})
		}, behavior.Unchanged},
		"two do not": {func() (behavior.Result, string) {
			return commonResult([]placedResult{{"a", "kept", ""}, {"b", "renewed", ""}})
		}, ""},
		"one does not know": {func() (behavior.Result, string) {
			return commonResult([]placedResult{{"a", "kept", ""}, {"b", "", "no etag"}})
		}, ""},
		"nobody looked": {func() (behavior.Result, string) { return commonResult(nil) }, ""},
	} {
		got, reason := row.of()
		if got != row.want || (got == "") == (reason == "") {
			t.Errorf("%s: got %q, %q", name, got, reason)
		}
	}
}

// Rounds for the tests below.
var (
	took  = Response{Status: 200, At: time.Unix(10, 0)}
	over  = Result{State: succeeded, FinishedAt: time.Unix(20, 0)}
	kinds = map[behavior.Result]round{
		behavior.Supersede:            {first: took, second: took, firstEnd: Result{State: canceled}, secondEnd: over, firstPresent: true, secondPresent: true},
		behavior.SupersedeDiscard:     {first: took, second: took, firstEnd: Result{State: canceled}, secondEnd: over, secondPresent: true},
		behavior.SupersedeDiscardLate: {first: took, second: took, firstEnd: Result{State: canceled}, secondEnd: over, firstSeen: true, secondSeen: true, secondPresent: true},
		behavior.Lock:                 {first: took, second: Response{Status: 429, Codes: []string{"RetryableError", "RetryableErrorDueToAnotherOperation"}}, firstEnd: over},
		behavior.Conflict:             {first: took, second: Response{Status: 409, Codes: []string{"AnotherOperationInProgress"}}, firstEnd: over},
		"":                            {first: took, second: took, firstEnd: over, secondEnd: over, firstPresent: true, secondPresent: true},
	}
)

func TestOutcomeOfARound(t *testing.T) {
	for want, r := range kinds {
		if got, reason := r.result(); got != want || (got == "") == (reason == "") {
			t.Errorf("%s: got %q, %q", want, got, reason)
		}
	}
	both := kinds[""]
	both.firstEnd.RunningAt = time.Unix(11, 0)
	lost := kinds[behavior.Supersede]
	lost.secondPresent = false
	swapped := kinds[behavior.SupersedeDiscard]
	swapped.firstEnd, swapped.secondEnd, swapped.firstPresent, swapped.secondPresent = swapped.secondEnd, swapped.firstEnd, true, false
	quota := kinds[behavior.Lock]
	quota.second.Codes = []string{"SubscriptionRequestsThrottled"}
	for reason, r := range map[string]round{
		"both writes ran at a time": both, "was not there in the end": lost, "refused for another reason: 429 Sub": quota,
		"the writes ended Failed and Succeeded":          {first: took, second: took, firstEnd: Result{State: failed}, secondEnd: over},
		"refused with 429, and the other ended Canceled": {first: took, second: Response{Status: 429}, firstEnd: Result{State: canceled}},
	} {
		if got, current := r.result(); got != "" || !strings.Contains(current, reason) {
			t.Errorf("%s: got %q, %q", reason, got, current)
		}
	}
	if got, _ := swapped.result(); got != behavior.SupersedeDiscard {
		t.Errorf("the other way round: got %q", got)
	}
}

// For any rounds, an answer was seen, or is mixed if two were; more rounds never undo that.
func TestLawOfRounds(t *testing.T) {
	names := []behavior.Result{"", behavior.Supersede, behavior.SupersedeDiscard, behavior.SupersedeDiscardLate, behavior.Lock, behavior.Conflict}
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOfN(rapid.SampledFrom(names), 0, maxRounds).Draw(t, "rounds")
		var rounds []round
		settled := false
		for _, name := range drawn {
			rounds = append(rounds, kinds[name])
			a, reason, enough := roundsResult(rounds)
			if a == "" && reason == "" {
				t.Fatal("no answer, and no reason")
			}
			if settled && len(rounds) <= sufficientRounds && !enough {
				t.Fatal("what was enough is no longer")
			}
			settled = settled || enough
		}
		a, _, _ := roundsResult(rounds)
		reported := slices.DeleteFunc(slices.Clone(drawn), func(n behavior.Result) bool { return n == "" })
		slices.Sort(reported)
		distinct := len(slices.Compact(slices.Clone(reported)))
		switch {
		case distinct == 0 || distinct > 1 && hasDiscards(reported) || distinct == 1 && len(reported) < minRounds:
			if a != "" {
				t.Fatalf("%v tell nothing, and the answer is %q", drawn, a)
			}
		case distinct > 1:
			if a != behavior.Mixed {
				t.Fatalf("%v: got %q", drawn, a)
			}
		case a != reported[0]:
			t.Fatalf("%v: got %q", drawn, a)
		}
	})
}

// hasDiscards reports whether some writes were rolled back.
func hasDiscards(reported []behavior.Result) bool {
	return slices.Contains(reported, behavior.SupersedeDiscard) || slices.Contains(reported, behavior.SupersedeDiscardLate)
}

func TestLatencies(t *testing.T) {
	start := time.Unix(0, 0)
	after := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	span := func(answered, running, over int) behavior.Span {
		e := Result{FinishedAt: after(over)}
		if running > 0 {
			e.RunningAt = after(running)
		}
		return writeSpan(Response{Sent: start, At: after(answered)}, e)
	}
	if got := span(2, 0, 2); got != (seconds(2, 2)) {
		t.Errorf("at once: %v", got)
	}
	if got := span(2, 8, 10); got != (seconds(8, 10)) {
		t.Errorf("later: %v", got)
	}
	got := summarizeLatency([]sample{{"a", seconds(1, 3), false}, {"b", seconds(2, 2), true}, {"a", seconds(30, 40), false}, {"a", seconds(5, 6), false}})
	want := []behavior.Latency{
		{Write: "a", Count: 3, Median: seconds(5, 6), Longest: seconds(30, 40)},
		{Write: "b", Count: 1, Immediate: 1, Median: seconds(2, 2), Longest: seconds(2, 2)},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func seconds(atLeast, atMost float64) behavior.Span {
	return behavior.Span{AtLeastSeconds: atLeast, AtMostSeconds: atMost}
}
