// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"testing"

	"weir.dev/weir/internal/lb"
)

func TestHealthPorts(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(b *lb.LoadBalancer)
		want int32
	}{
		{"two rules with one probe", func(*lb.LoadBalancer) {}, 30000},
		{"another pool's rule has no probe", func(b *lb.LoadBalancer) { b.Rules = append(b.Rules, lb.Rule{Pool: "other"}) }, 30000},
		{"the first rule has no probe", func(b *lb.LoadBalancer) { b.Rules[0].Probe = "" }, 0},
		{"another rule has no probe", func(b *lb.LoadBalancer) { b.Rules = append(b.Rules, lb.Rule{Pool: "Web"}) }, 0},
		{"its probe is missing", func(b *lb.LoadBalancer) { b.Rules[1].Probe = "gone" }, 0},
		{"its probe connects only", func(b *lb.LoadBalancer) { b.Probes[0].Protocol = lb.ProbeTCP }, 0},
		{"another probe has another port", func(b *lb.LoadBalancer) { b.Rules[1].Probe = "other" }, 0},
		{"all count as up while none is", func(b *lb.LoadBalancer) { b.Probes[0].NoHealthyBackends = lb.AllProbedUp }, 0},
		{"others use the pool", func(b *lb.LoadBalancer) { b.Pinned = map[string]bool{"web": true} }, 0},
		{"no rule", func(b *lb.LoadBalancer) { b.Rules = nil }, 0},
	} {
		b := lb.LoadBalancer{
			Probes: []lb.Probe{{Name: "Health", Protocol: lb.ProbeHTTP, Port: 30000}, {Name: "other", Protocol: lb.ProbeHTTP, Port: 30001}},
			Rules:  []lb.Rule{{Name: "80", Pool: "web", Probe: "health"}, {Name: "443", Pool: "WEB", Probe: "HEALTH"}},
		}
		tt.edit(&b)
		if got := b.HealthPorts()["web"]; got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
