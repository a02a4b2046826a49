// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// A replaced shared pool is deleted with its last rule, unless it has foreign members or references.
func TestAPoolInWhosePlaceAnotherIsGoes(t *testing.T) {
	for about, tt := range map[string]struct {
		change  func(*Input)
		retired string
		stays   bool
	}{
		"no rule names it":                 {func(*Input) {}, "OLD", false},
		"it has no successor":              {func(*Input) {}, "", true},
		"a rule of another owner names it": {func(in *Input) { in.Observed.Rules = []lb.Rule{{Name: "theirs", Pool: "old"}} }, "old", true},
		"others have put something there":  {func(in *Input) { in.ForeignMembers = map[string][]string{"old": {"10.0.0.9"}} }, "old", true},
		"interfaces are in it":             {func(in *Input) { in.Observed.Pools[0].NIC = true }, "old", true},
		"an outbound rule refers to it":    {func(in *Input) { in.Observed.Pinned = map[string]bool{"old": true} }, "old", true},
	} {
		in := Input{Observed: lb.LoadBalancer{Etag: "1", Pools: []lb.Pool{pool("old"), pool("kubernetes")}}, Services: []ServiceParts{newTestParts("a", 80)}, SharedPools: []string{"kubernetes", "old"}}
		if tt.change(&in); tt.retired != "" {
			in.ReplacedPools = []string{tt.retired}
		}
		p := Make(in)
		if stays := containsName(poolNames(p.Next.Pools), "old"); stays != tt.stays || p.Delete {
			t.Errorf("%s: it stays: %t, want %t", about, stays, tt.stays)
		}
		if in.Observed = p.Next; !Make(in).IsEmpty() {
			t.Errorf("%s: again there is something to do", about)
		}
	}
}

// The messages of a pool conversion name the blocker and what is waited for.
func TestPoolOfOtherKindMessage(t *testing.T) {
	id := lb.PoolID{LoadBalancer: lb.LoadBalancerID{Name: "kubernetes"}, Name: "nodes"}
	for text, want := range map[string]string{
		RetainedPart{Pool: id, IsConversion: true, Members: []string{"10.0.0.9", "10.0.0.10"}}.String(): "remains unchanged: 10.0.0.9, 10.0.0.10 in it belong to another owner, which has to remove it",
		RetainedPart{Pool: id, IsConversion: true, Reason: "it is pinned"}.String():                     "remains unchanged: it is pinned",
		DrainingPool{Pool: id, Interim: "i", Interfaces: 3}.String():                                    "changes from network interfaces to addresses; until it is filled again, flows use backend pool i",
		DrainingPool{Pool: id, Interim: "i", ToInterfaces: true}.String():                               "changes from addresses to network interfaces",
	} {
		if !strings.Contains(text, want) || !strings.HasPrefix(text, "backend pool nodes of load balancer kubernetes ") {
			t.Errorf("%q, want %q", text, want)
		}
	}
}
