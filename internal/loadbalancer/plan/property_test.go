// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// A value that no Service sets is kept, also with other changes; a default equals no value.
func TestPropertiesStayUnlessSet(t *testing.T) {
	for _, tt := range []struct {
		name       string
		has, wants lb.NoHealthyBackends
		next       lb.NoHealthyBackends
		changes    int
	}{
		{"nothing set", "", "", "", 0},
		{"another client's", lb.AllProbedUp, "", lb.AllProbedUp, 0},
		{"an unknown one", "Other", "", "Other", 0},
		{"set", lb.AllProbedDown, lb.AllProbedUp, lb.AllProbedUp, 1},
		{"in sync", lb.AllProbedUp, lb.AllProbedUp, lb.AllProbedUp, 0},
		{"default", lb.AllProbedUp, lb.AllProbedDown, lb.AllProbedDown, 1},
		{"default of Azure", "", lb.AllProbedDown, "", 0},
	} {
		for _, port := range []int32{80, 81} {
			have, want := lb.Probe{Name: "a1-TCP-80", Port: 80, NoHealthyBackends: tt.has}, lb.Probe{Name: "A1-TCP-80", Port: port, NoHealthyBackends: tt.wants}
			next := mergeParts([]lb.Probe{have}, []lb.Probe{want}, ownedBy("a1", probeName), probeName, sameProbe, keepBehavior)
			changes := Diff(lb.LoadBalancer{Probes: []lb.Probe{have}}, lb.LoadBalancer{Probes: next})
			if port == 80 && (next[0].NoHealthyBackends != tt.next || len(changes) != tt.changes) ||
				port == 81 && (len(changes) != 1 || tt.next != "" && next[0].NoHealthyBackends != tt.next) {
				t.Errorf("%s, port %d: %+v after %d changes", tt.name, port, next, len(changes))
			}
		}
	}
	for _, tt := range []struct {
		name        string
		has, wants  *bool
		next, write bool
	}{
		{"nothing set", nil, nil, false, false},
		{"another client's", new(true), nil, true, false},
		{"set", nil, new(true), true, true},
		{"in sync", new(true), new(true), true, false},
		{"default", new(true), new(false), false, true},
		{"default of Azure", nil, new(false), false, false},
	} {
		for _, port := range []int32{80, 81} {
			rule, want := lb.Rule{Name: "a1-TCP-80", BackendPort: 80, ConnectionTracking: tt.has}, lb.Rule{Name: "a1-TCP-80", BackendPort: port, ConnectionTracking: tt.wants}
			next := mergeParts([]lb.Rule{rule}, []lb.Rule{want}, ownedBy("a1", ruleName), ruleName, sameRule, keepTracking)
			changes := Diff(lb.LoadBalancer{Rules: []lb.Rule{rule}}, lb.LoadBalancer{Rules: next})
			if next[0].TracksConnections() != tt.next || (len(changes) > 0) != (tt.write || port == 81) {
				t.Errorf("%s, port %d: %+v after %d changes", tt.name, port, next, len(changes))
			}
		}
	}
}

// A drain period that no Service sets is kept; a new pool gets it with its first write.
func TestDrainPeriodStaysUnlessSet(t *testing.T) {
	for _, tt := range []struct {
		name       string
		has, wants *int32
		next       int32
		change     string
	}{
		{"nothing set", nil, nil, 0, ""},
		{"another client's", new(int32(30)), nil, 30, ""},
		{"set", nil, new(int32(60)), 60, "pool shop-web: drainPeriodInSeconds 0, Weir wants 60"},
		{"changed", new(int32(30)), new(int32(60)), 60, "pool shop-web: drainPeriodInSeconds 30, Weir wants 60"},
		{"in sync", new(int32(60)), new(int32(60)), 60, ""},
		{"removed", new(int32(30)), new(int32(0)), 0, "pool shop-web: drainPeriodInSeconds 30, Weir wants 0"},
		{"default of Azure", nil, new(int32(0)), 0, ""},
	} {
		balancer := lb.LoadBalancer{Pools: []lb.Pool{{ID: lb.PoolID{Name: "Shop-Web"}, DrainSeconds: tt.has}, {ID: lb.PoolID{Name: "other"}, DrainSeconds: new(int32(9))}}}
		next := cloneLoadBalancer(balancer)
		applyParts(&next, ServiceParts{Owner: "a1", Pools: []lb.Pool{{ID: lb.PoolID{Name: "shop-web"}, DrainSeconds: tt.wants}}})
		var text string
		for _, c := range Diff(balancer, next) {
			text += strings.ToLower(c.RevertText()[:len("pool shop-web")]) + c.RevertText()[len("pool shop-web"):]
		}
		if next.Pools[0].DrainPeriod() != tt.next || next.Pools[1].DrainPeriod() != 9 || text != tt.change {
			t.Errorf("%s: %+v after %q", tt.name, next.Pools, text)
		}
		fresh := lb.LoadBalancer{}
		applyParts(&fresh, ServiceParts{Owner: "a1", Pools: []lb.Pool{{ID: lb.PoolID{Name: "shop-web"}, DrainSeconds: tt.wants}}})
		if fresh.Pools[0].DrainSeconds != tt.wants {
			t.Errorf("%s: a new pool has %+v", tt.name, fresh.Pools)
		}
	}
}
