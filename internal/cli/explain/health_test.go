// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/lb"
)

// Azure's health is a column of the members; without the right it is one line, and everything else remains.
func TestHealthOfMembers(t *testing.T) {
	down := lb.MemberHealth{IP: netip.MustParseAddr("10.0.0.2"), Reason: "Down_Probe_HttpStatusCodeError"}
	up := lb.MemberHealth{IP: netip.MustParseAddr("10.0.0.1"), Up: true, Reason: "Up_Probe_Success"}
	newStory := func() Explanation {
		return Explanation{Pools: []Pool{{Name: "web", Members: []Member{{Node: "n1", Address: "10.0.0.1", Is: InPool}, {Node: "n2", Address: "10.0.0.2", Is: InPool}, {Node: "n3", Is: LeftOut}}}}}
	}
	show := func(s Explanation) string {
		var b strings.Builder
		if err := s.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	before, after, _ := strings.Cut(show(newStory()), "\nWhat happened")
	for name, tt := range map[string]struct {
		rules []app.RuleHealth
		err   error
		want  []string
	}{
		"one probe": {rules: []app.RuleHealth{{Rule: "r", Members: []lb.MemberHealth{down, up}}}, want: []string{
			"AZURE'S PROBE", "n1     10.0.0.1   InPool    up (Up_Probe_Success)", "n2     10.0.0.2   InPool    down: the probe gets another status than 200", "n3     -          LeftOut   -",
		}},
		"two probes": {rules: []app.RuleHealth{{Rule: "r", Members: []lb.MemberHealth{up}}, {Rule: "s", Members: []lb.MemberHealth{{IP: up.IP}}}}, want: []string{"rule r: up (Up_Probe_Success); rule s: down"}},
		"no right":   {err: errors.New("no\nright"), want: []string{before + "\nAzure's probes: no right\n\nWhat happened" + after}},
	} {
		s := newStory()
		Reader{Health: func(context.Context, string, string) (map[string]string, error) {
			return summarizeHealth(tt.rules), tt.err
		}}.addHealth(t.Context(), &s)
		for _, want := range tt.want {
			if got := show(s); !strings.Contains(got, want) {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
			}
		}
	}
}

func TestHealthReadsAreBounded(t *testing.T) {
	reads := 0
	s := Explanation{Pools: make([]Pool, maxHealthPools+5)}
	Reader{Health: func(context.Context, string, string) (map[string]string, error) { reads++; return nil, nil }}.addHealth(t.Context(), &s)
	if reads != maxHealthPools || s.HealthError == "" {
		t.Errorf("%d reads, %q", reads, s.HealthError)
	}
}
