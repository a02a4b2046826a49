// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"testing"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/explain"
)

func TestLevels(t *testing.T) {
	current := func(wanted, shown, foreign, down int32, members *v1alpha1.OutOfSyncMembers) v1alpha1.BackendPoolStatus {
		return v1alpha1.BackendPoolStatus{Desired: &wanted, Observed: &shown, Foreign: &foreign, DownCount: ptr.To(down), Members: members}
	}
	some := func(n int32) *v1alpha1.MemberSample { return &v1alpha1.MemberSample{Count: n} }
	for _, tt := range []struct {
		name    string
		of      v1alpha1.BackendPoolStatus
		words   string
		percent int
		over    string
	}{
		{"not read yet", v1alpha1.BackendPoolStatus{}, "not known yet", 0, ""},
		{"wanted, and not read yet", v1alpha1.BackendPoolStatus{Desired: ptr.To(int32(3))}, "not known yet", 0, ""},
		{"in sync", current(3, 3, 0, 0, nil), "3 of 3", 100, ""},
		{"nothing is wanted", current(0, 0, 0, 0, nil), "0 of 0", 100, ""},
		{"with another owner's", current(3, 5, 2, 0, nil), "3 of 3, 2 foreign", 100, "foreign"},
		{"one is missing, by the counts", current(3, 2, 0, 0, nil), "2 of 3, 1 missing", 66, ""},
		{"one is surplus, by the counts", current(3, 4, 0, 0, nil), "3 of 3, 1 surplus", 100, "surplus"},
		{"as many are missing as surplus", current(3, 3, 0, 0, &v1alpha1.OutOfSyncMembers{Missing: some(2), Surplus: some(2)}), "1 of 3, 2 missing, 2 surplus", 33, "surplus"},
		{"one is Down", current(3, 3, 0, 1, nil), "3 of 3, 1 Down", 100, ""},
		{"none is there", current(4, 0, 0, 0, nil), "0 of 4, 4 missing", 0, ""},
		{"more are missing than wanted", current(2, 0, 0, 0, &v1alpha1.OutOfSyncMembers{Missing: some(3)}), "0 of 2, 2 missing", 0, ""},
		{"fewer are wanted since the last attempt", current(3, 7, 0, 0, &v1alpha1.OutOfSyncMembers{Surplus: some(1)}), "3 of 3, 4 surplus", 100, "surplus"},
		{"the pool is gone", current(4, 0, 0, 1, nil), "0 of 4, 4 missing", 0, ""},
	} {
		l := newMemberCounts(&tt.of)
		if l.Words() != tt.words || l.PercentPresent() != tt.percent || l.Over() != tt.over {
			t.Errorf("%s: %q, %d, %q; want %q, %d, %q", tt.name, l.Words(), l.PercentPresent(), l.Over(), tt.words, tt.percent, tt.over)
		}
	}
	p := explain.Pool{Desired: ptr.To(int32(9)), Observed: ptr.To(int32(5)), Foreign: ptr.To(int32(1)), Members: []explain.Member{
		{State: explain.InPool}, {State: explain.Down}, {State: explain.Missing}, {State: explain.Leaving}, {State: explain.LeftOut}, {State: explain.Foreign},
	}}
	for allListed, want := range map[bool]string{true: "2 of 3, 1 Down, 1 missing, 1 surplus, 1 foreign", false: "4 of 9, 1 Down, 5 missing, 1 foreign"} {
		if got := countMembers(&p, allListed).Words(); got != want {
			t.Errorf("all listed %t: %s", allListed, got)
		}
	}
}

// Counts never contradict each other, whatever a status has.
func TestLawOfCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, counts := rapid.Int32Range(0, 9), []string{"wanted", "shown", "foreign", "down"}
		drawn := make([]*int32, len(counts))
		for i, name := range counts {
			drawn[i] = ptr.To(n.Draw(t, name))
		}
		s := v1alpha1.BackendPoolStatus{Desired: drawn[0], Observed: drawn[1], Foreign: drawn[2], DownCount: drawn[3]}
		if rapid.Bool().Draw(t, "compared") {
			s.Members = &v1alpha1.OutOfSyncMembers{Missing: &v1alpha1.MemberSample{Count: n.Draw(t, "missing")}, Surplus: &v1alpha1.MemberSample{Count: n.Draw(t, "surplus")}}
		}
		p := explain.Pool{Desired: drawn[0], Observed: drawn[1], Foreign: drawn[2]}
		for range n.Draw(t, "members") {
			p.Members = append(p.Members, explain.Member{State: rapid.SampledFrom([]string{explain.InPool, explain.Down, explain.Missing, explain.Leaving}).Draw(t, "is")})
		}
		for _, l := range []memberCounts{newMemberCounts(&s), countMembers(&p, true), countMembers(&p, false)} {
			if l.In < 0 || l.Down < 0 || l.Missing < 0 || l.Surplus < 0 || l.In+l.Down+l.Missing != l.Wanted {
				t.Fatalf("%+v: %s", l, l.Words())
			}
		}
		if l := newMemberCounts(&s); l.In+l.Down+l.Surplus != max(0, int(*drawn[1]-*drawn[2])) {
			t.Fatalf("%+v of %d observed", l, *drawn[1])
		}
	})
}

// The segments of a bar cover its full width.
func TestLawOfBars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5000)
		l := memberCounts{Known: true, In: n.Draw(t, "in"), Down: n.Draw(t, "down"), Missing: n.Draw(t, "missing"), Surplus: n.Draw(t, "surplus"), Foreign: n.Draw(t, "foreign")}
		l.Wanted = l.In + l.Down + l.Missing
		end := 0.0
		for _, p := range l.Parts() {
			if math.Abs(p.At-end) > 1e-6 || p.Wide <= 0 {
				t.Fatalf("%+v after %v", p, end)
			}
			end = p.At + p.Wide
		}
		if math.Abs(end-100) > 1e-6 || l.PercentPresent() < 0 || l.PercentPresent() > 100 {
			t.Fatalf("it ends at %v, and is full to %d", end, l.PercentPresent())
		}
	})
}

// The chart samples pools in proportion to their states, and always shows a failed one.
func TestChainShowsEachState(t *testing.T) {
	pools := make([]poolRow, 10_000)
	for i := range pools {
		pools[i] = poolRow{Balancer: "kubernetes", Class: stateInSync}
		switch {
		case i < 1:
			pools[i].Class = stateFailed
		case i < 2500:
			pools[i].Class = stateUpdating
		}
	}
	b := groupByLoadBalancer(pools)[0]
	drawn := map[string]int{}
	for _, p := range b.Pools {
		drawn[p.Class]++
	}
	if b.Words() != "10000 pools, 7500 in sync, 2499 in progress, 1 wrong" || b.More() != 9940 || drawn[stateFailed] != 1 || drawn[stateUpdating] != 14 || drawn[stateInSync] != 45 {
		t.Errorf("%s, %v", b.Words(), drawn)
	}
	if b := groupByLoadBalancer(pools[:3])[0]; len(b.Pools) != 3 || len(b.Busy) != 2 {
		t.Errorf("%+v", b)
	}
}
