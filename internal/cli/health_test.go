// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/netip"
	"testing"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/lb"
)

func TestHealthIsSummarized(t *testing.T) {
	up := lb.MemberHealth{IP: netip.MustParseAddr("10.0.0.1"), Up: true, Reason: "Up_Probe_Success"}
	for _, tt := range []struct {
		rules []app.RuleHealth
		want  string
	}{
		{[]app.RuleHealth{{Rule: "r", Members: []lb.MemberHealth{up}}}, "up (Up_Probe_Success)"},
		{[]app.RuleHealth{{Rule: "r", Members: []lb.MemberHealth{{IP: up.IP, Reason: "New"}}}}, "down (New)"},
		{[]app.RuleHealth{{Rule: "r", Members: []lb.MemberHealth{up}}, {Rule: "s", Members: []lb.MemberHealth{{IP: up.IP}}}}, "rule r: up (Up_Probe_Success); rule s: down"},
	} {
		if got := summarizeHealth(tt.rules)["10.0.0.1"]; got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
