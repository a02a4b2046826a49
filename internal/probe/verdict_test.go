// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/behaviour"
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
		want                behaviour.Answer
		why                 string
	}{
		{at("a", "b"), at("a", "c"), at("c", "a"), behaviour.Taken, ""},
		{at("a", "b"), at("a", "c"), at("b", "a"), behaviour.Ignored, ""},
		{at("a", "b"), at("a", "c"), at("a"), "", "neither"},
		{at("a", "b"), at("a", "c"), at("a", "b", "c"), "", "neither"},
		{at("a", "b"), at("a", "c"), nil, "", "neither"},
		{at("a", "b"), at("b", "a"), at("a", "b"), "", "changed nothing"},
	} {
		got, why := ofAddresses(row.before, row.sent, row.after)
		if got != row.want || !strings.Contains(why, row.why) || (got == "") == (why == "") {
			t.Errorf("%v: got %q, %q", row, got, why)
		}
	}
}

func TestOfTheRest(t *testing.T) {
	refused := func(status int, codes ...string) Answer { return Answer{Status: status, Codes: codes} }
	down := func() (behaviour.Answer, string) { return ofState("None", "Down", "Down") }
	for name, row := range map[string]struct {
		of   func() (behaviour.Answer, string)
		want behaviour.Answer
	}{
		"a state is taken":           {func() (behaviour.Answer, string) { return ofState("Down", "None", "None") }, behaviour.Taken},
		"a state is ignored":         {func() (behaviour.Answer, string) { return ofState("Down", "None", "Down") }, behaviour.Ignored},
		"a state is another":         {func() (behaviour.Answer, string) { return ofState("Down", "None", "Up") }, ""},
		"the address is gone":        {func() (behaviour.Answer, string) { return ofState("Down", "None", "") }, ""},
		"a new pool is empty":        {func() (behaviour.Answer, string) { return ofNewPool(at("a"), nil) }, behaviour.Empty},
		"a new pool is filled":       {func() (behaviour.Answer, string) { return ofNewPool(at("a"), at("a")) }, behaviour.Filled},
		"a new pool has others":      {func() (behaviour.Answer, string) { return ofNewPool(at("a"), at("b")) }, ""},
		"an etag is kept":            {func() (behaviour.Answer, string) { return ofEtag("1", "1") }, behaviour.Kept},
		"an etag is renewed":         {func() (behaviour.Answer, string) { return ofEtag("1", "2") }, behaviour.Renewed},
		"no etag":                    {func() (behaviour.Answer, string) { return ofEtag("", "2") }, ""},
		"a guard is honoured":        {func() (behaviour.Answer, string) { return ofGuard(refused(412)) }, behaviour.Honoured},
		"a guard is ignored":         {func() (behaviour.Answer, string) { return ofGuard(Answer{Status: 200}) }, behaviour.Ignored},
		"a guard meets a lock":       {func() (behaviour.Answer, string) { return ofGuard(refused(409, "Conflict")) }, ""},
		"Down is refused":            {func() (behaviour.Answer, string) { return ofRefusal(refused(400, "No"), End{}, down) }, behaviour.Refused},
		"Down is forbidden":          {func() (behaviour.Answer, string) { return ofRefusal(refused(403, "No"), End{}, down) }, ""},
		"Down fails later":           {func() (behaviour.Answer, string) { return ofRefusal(Answer{Status: 200}, End{State: failed}, down) }, ""},
		"Down is taken":              {func() (behaviour.Answer, string) { return ofRefusal(Answer{Status: 200}, End{State: succeeded}, down) }, behaviour.Taken},
		"a child of Failed is taken": {func() (behaviour.Answer, string) { return ofChildOfFailed(Answer{Status: 201}) }, behaviour.Taken},
		"a child of Failed is refused": {func() (behaviour.Answer, string) {
			return ofChildOfFailed(refused(400, "ParentResourceIsInFailedState"))
		}, behaviour.Refused},
		"a child of Failed is invalid": {func() (behaviour.Answer, string) { return ofChildOfFailed(refused(400, "InvalidRequest")) }, ""},
		"two agree":                    {func() (behaviour.Answer, string) { return agreed([]look{{"a", "kept", ""}, {"b", "kept", ""}}) }, behaviour.Kept},
		"two do not":                   {func() (behaviour.Answer, string) { return agreed([]look{{"a", "kept", ""}, {"b", "renewed", ""}}) }, ""},
		"one does not know":            {func() (behaviour.Answer, string) { return agreed([]look{{"a", "kept", ""}, {"b", "", "no etag"}}) }, ""},
		"nobody looked":                {func() (behaviour.Answer, string) { return agreed(nil) }, ""},
	} {
		got, why := row.of()
		if got != row.want || (got == "") == (why == "") {
			t.Errorf("%s: got %q, %q", name, got, why)
		}
	}
}

// Rounds for the tests below.
var (
	took  = Answer{Status: 200, At: time.Unix(10, 0)}
	over  = End{State: succeeded, Over: time.Unix(20, 0)}
	kinds = map[behaviour.Answer]round{
		behaviour.Supersede:            {first: took, second: took, firstEnd: End{State: canceled}, secondEnd: over, firstThere: true, secondThere: true},
		behaviour.SupersedeDiscard:     {first: took, second: took, firstEnd: End{State: canceled}, secondEnd: over, secondThere: true},
		behaviour.SupersedeDiscardLate: {first: took, second: took, firstEnd: End{State: canceled}, secondEnd: over, firstSeen: true, secondSeen: true, secondThere: true},
		behaviour.Lock:                 {first: took, second: Answer{Status: 429, Codes: []string{"RetryableError", "RetryableErrorDueToAnotherOperation"}}, firstEnd: over},
		behaviour.Conflict:             {first: took, second: Answer{Status: 409, Codes: []string{"AnotherOperationInProgress"}}, firstEnd: over},
		"":                             {first: took, second: took, firstEnd: over, secondEnd: over, firstThere: true, secondThere: true},
	}
)

func TestOutcomeOfARound(t *testing.T) {
	for want, r := range kinds {
		if got, why := r.outcome(); got != want || (got == "") == (why == "") {
			t.Errorf("%s: got %q, %q", want, got, why)
		}
	}
	both := kinds[""]
	both.firstEnd.Running = time.Unix(11, 0)
	lost := kinds[behaviour.Supersede]
	lost.secondThere = false
	swapped := kinds[behaviour.SupersedeDiscard]
	swapped.firstEnd, swapped.secondEnd, swapped.firstThere, swapped.secondThere = swapped.secondEnd, swapped.firstEnd, true, false
	quota := kinds[behaviour.Lock]
	quota.second.Codes = []string{"SubscriptionRequestsThrottled"}
	for why, r := range map[string]round{
		"both writes ran at a time": both, "was not there in the end": lost, "refused for another reason: 429 Sub": quota,
		"the writes ended Failed and Succeeded":          {first: took, second: took, firstEnd: End{State: failed}, secondEnd: over},
		"refused with 429, and the other ended Canceled": {first: took, second: Answer{Status: 429}, firstEnd: End{State: canceled}},
	} {
		if got, is := r.outcome(); got != "" || !strings.Contains(is, why) {
			t.Errorf("%s: got %q, %q", why, got, is)
		}
	}
	if got, _ := swapped.outcome(); got != behaviour.SupersedeDiscard {
		t.Errorf("the other way round: got %q", got)
	}
}

// For any rounds, an answer was seen, or is mixed if two were; more rounds never undo that.
func TestLawOfRounds(t *testing.T) {
	names := []behaviour.Answer{"", behaviour.Supersede, behaviour.SupersedeDiscard, behaviour.SupersedeDiscardLate, behaviour.Lock, behaviour.Conflict}
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOfN(rapid.SampledFrom(names), 0, mostRounds).Draw(t, "rounds")
		var rounds []round
		settled := false
		for _, name := range drawn {
			rounds = append(rounds, kinds[name])
			a, why, enough := ofRounds(rounds)
			if a == "" && why == "" {
				t.Fatal("no answer, and no reason")
			}
			if settled && len(rounds) <= enoughRounds && !enough {
				t.Fatal("what was enough is no longer")
			}
			settled = settled || enough
		}
		a, _, _ := ofRounds(rounds)
		told := slices.DeleteFunc(slices.Clone(drawn), func(n behaviour.Answer) bool { return n == "" })
		slices.Sort(told)
		distinct := len(slices.Compact(slices.Clone(told)))
		switch {
		case distinct == 0 || distinct > 1 && discards(told) || distinct == 1 && len(told) < fewestRounds:
			if a != "" {
				t.Fatalf("%v tell nothing, and the answer is %q", drawn, a)
			}
		case distinct > 1:
			if a != behaviour.Mixed {
				t.Fatalf("%v: got %q", drawn, a)
			}
		case a != told[0]:
			t.Fatalf("%v: got %q", drawn, a)
		}
	})
}

// discards reports whether some writes were rolled back.
func discards(told []behaviour.Answer) bool {
	return slices.Contains(told, behaviour.SupersedeDiscard) || slices.Contains(told, behaviour.SupersedeDiscardLate)
}

func TestLatencies(t *testing.T) {
	start := time.Unix(0, 0)
	after := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	span := func(answered, running, over int) Span {
		e := End{Over: after(over)}
		if running > 0 {
			e.Running = after(running)
		}
		return spanOf(Answer{Sent: start, At: after(answered)}, e)
	}
	if got := span(2, 0, 2); got != (Span{2, 2}) {
		t.Errorf("at once: %v", got)
	}
	if got := span(2, 8, 10); got != (Span{8, 10}) {
		t.Errorf("later: %v", got)
	}
	got := latencies([]sample{{"a", Span{1, 3}, false}, {"b", Span{2, 2}, true}, {"a", Span{30, 40}, false}, {"a", Span{5, 6}, false}})
	want := []Latency{
		{Write: "a", Count: 3, Median: Span{5, 6}, Longest: Span{30, 40}},
		{Write: "b", Count: 1, AtOnce: 1, Median: Span{2, 2}, Longest: Span{2, 2}},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
