// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// A Service gets the public IP where its rules are, otherwise one where its port is free.
func TestAPublicIPWhosePortIsTaken(t *testing.T) {
	rule := func(owner string, port int32) lb.Rule {
		return lb.Rule{Name: owner + "-TCP", Transport: lb.TCP, FrontendPort: port}
	}
	const first, second = "c-aa00", "c-aa00-IPv4"
	on := func(balancer, frontend string) string {
		id := kubernetes
		id.Name = balancer
		return id.String() + "/frontendIPConfigurations/" + frontend
	}
	for about, tt := range map[string]struct {
		usedBy map[string]string
		rules  map[string][]lb.Rule
		looks  int
		want   string
	}{
		"none is there":                      {nil, nil, 0, first},
		"it is free":                         {map[string]string{first: ""}, nil, 0, first},
		"the port is free":                   {map[string]string{first: on("kubernetes", "aa00")}, map[string][]lb.Rule{first: {rule("bb00", 81)}}, 0, first},
		"the port is taken":                  {map[string]string{first: on("kubernetes", "aa00")}, map[string][]lb.Rule{first: {rule("bb00", 80)}}, 0, second},
		"it has the port":                    {map[string]string{first: on("kubernetes", "aa00")}, map[string][]lb.Rule{first: {rule("aa00", 80), rule("bb00", 81)}}, 0, first},
		"it has the address":                 {map[string]string{first: on("kubernetes", "aa00")}, map[string][]lb.Rule{first: {rule("aa00", 82), rule("bb00", 80)}}, 0, first},
		"it has another, the port is taken":  {map[string]string{first: on("kubernetes", "aa00"), second: on("kubernetes", "aa00-1")}, map[string][]lb.Rule{first: {rule("bb00", 80)}, second: {rule("aa00", 80)}}, 1, second},
		"it has another, the port is free":   {map[string]string{first: on("kubernetes", "aa00"), second: on("kubernetes", "aa00-1")}, map[string][]lb.Rule{first: {rule("bb00", 81)}, second: {rule("aa00", 80)}}, 1, second},
		"others keep it on another balancer": {map[string]string{first: on("kubernetes-2", "aa00")}, map[string][]lb.Rule{first: {rule("bb00", 81)}}, 0, second},
		"it moves from another balancer":     {map[string]string{first: on("kubernetes-2", "aa00")}, map[string][]lb.Rule{first: {rule("aa00", 81)}}, 0, first},
	} {
		var ips []lb.PublicIP
		for name, used := range tt.usedBy {
			ip := exists(name, "shop/web", "20.0.0.7")
			ip.UsedBy = used
			ips = append(ips, ip)
		}
		k, _ := keeperOf(ips...)
		looks := 0
		other := kubernetes
		other.Name = "kubernetes-2"
		k.cfg.LoadBalancers = []lb.LoadBalancerID{kubernetes, other}
		k.cfg.RulesAt = func(ip lb.PublicIP) []lb.Rule { return tt.rules[ip.ID.Name] }
		k.cfg.ReadRules = func(context.Context, lb.LoadBalancerID) error { looks++; return nil }
		want := service.PublicIP{ID: named(first), ManagedPrefix: first, Family: lb.IPv4, Tags: map[string]string{service.TagService: "shop/web", service.TagCluster: "c"}}
		req := &Request{Service: "shop/web", Owner: "aa00", Desired: &service.Spec{
			Frontends: []service.Frontend{{Frontend: lb.Frontend{Name: "aa00", Family: lb.IPv4}, PublicIP: &want}},
			Rules:     []lb.Rule{{Name: "aa00-TCP-80", Frontend: "aa00", Transport: lb.TCP, FrontendPort: 80}},
		}}
		r := k.BeginRound(t.Context(), kubernetes, []*Request{req})
		if got := r.resolveName(want, req).ID.Name; got != tt.want || looks != tt.looks {
			t.Errorf("%s: %s after %d looks, want %s after %d", about, got, looks, tt.want, tt.looks)
		}
	}
}
