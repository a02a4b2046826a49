// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// sharedFrontend is a load balancer with the frontend aa and one rule of each owner.
func sharedFrontend(gateway string, owners ...string) lb.LoadBalancer {
	b := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1", Pools: []lb.Pool{pool("kubernetes")}}
	if len(owners) == 0 {
		return b
	}
	b.Frontends = []lb.Frontend{{Name: "aa", PublicIP: "/pip/aa"}}
	if gateway != "" {
		b.Frontends[0].GatewayLoadBalancer = &gateway
	}
	for i, owner := range owners {
		s := newTestParts(owner, int32(80+i)) //nolint:gosec // a port
		s.Rules[0].Frontend = "aa"
		b.Rules, b.Probes = append(b.Rules, s.Rules...), append(b.Probes, s.Probes...)
	}
	return b
}

// Services of a frontend agree on its gateway load balancer. Otherwise it does not change, and the Service that wants
// another one is rejected: no Service loses the one that it requests, and none gets that of another.
func TestGatewayLoadBalancers(t *testing.T) {
	const kept = "kept"
	for _, tt := range []struct {
		name  string
		has   string
		on    string // owners with rules at the frontend
		wants string // of Services in the plan, by owner; kept without annotation, "" once removed
		other string // annotations of Services outside the plan
		next  string
		fails string
	}{
		{"new", "", "", "aa=x", "", "x", ""},
		{"new, no annotation", "", "", "aa=kept", "", "", ""},
		{"set", "", "aa", "aa=x", "", "x", ""},
		{"changed", "x", "aa", "aa=y", "", "y", ""},
		{"removed", "x", "aa", "aa=", "", "", ""},
		{"another client's", "x", "aa", "aa=kept", "", "x", ""},
		{"set, one for all", "", "aa ab", "aa=x ab=x", "", "x", ""},
		{"set, the other is not in the plan", "", "aa ab", "aa=x", "ab=x", "x", ""},
		{"set by the Service that shares it", "", "aa ab", "ab=x", "aa=x", "x", ""},
		{"removed by the Service that shares it", "x", "aa ab", "ab=", "", "", ""},
		{"set, the other has two", "", "aa ab", "aa=x", "ab=w,X", "x", ""},
		{"set, the other requests none", "", "aa ab", "aa=x ab=kept", "", "", "aa"},
		{"set, the other requests none outside the plan", "", "aa ab", "aa=x", "", "", "aa"},
		{"changed, the other stays", "x", "aa ab", "aa=y ab=x", "", "x", "aa"},
		{"changed, the other stays outside the plan", "x", "aa ab", "aa=y", "ab=x", "x", "aa"},
		{"changed by the younger", "x", "aa ab", "aa=x ab=y", "", "x", "ab"},
		{"removed, the other stays", "x", "aa ab", "aa= ab=x", "", "x", "aa"},
		{"removed, the other stays outside the plan", "x", "aa ab", "aa=", "ab=x", "x", "aa"},
		{"removed, the other is invalid", "x", "aa ab", "aa=", "ab=nonsense", "x", "aa"},
		{"removed, the other requests none", "x", "aa ab", "aa= ab=kept", "", "", ""},
		{"removed by both", "x", "aa ab", "aa= ab=", "", "", ""},
		{"in sync, the other wants another change", "x", "aa ab", "aa=x", "ab=y", "x", ""},
		{"joins", "x", "aa", "aa=x ab=kept", "", "x", ""},
		{"joins a new one", "", "", "aa=x ab=kept", "", "x", ""},
		{"joins after its own was removed", "", "", "aa=x ab=", "", "x", ""},
		{"joins after its own was removed, while it is set", "", "aa", "aa=x ab=", "", "x", ""},
		{"joins with the same", "x", "aa", "ab=x", "aa=x", "x", ""},
		{"joins with another", "x", "aa", "ab=y", "aa=x", "x", "ab"},
		{"joins with one where there is none", "", "aa", "ab=x", "", "", "ab"},
		{"joins a new one with one where there is none", "", "", "aa=kept ab=x", "", "", "ab"},
		{"joins with the former one while it changes", "x", "aa", "aa=y ab=x", "", "y", "ab"},
		{"the other leaves", "x", "aa ab", "aa=y ab=leaves", "", "y", ""},
		{"a rule of another client", "", "aa ssh", "aa=x", "", "", "aa"},
	} {
		values := func(text string) map[string]string {
			balancers := map[string]string{}
			for _, pair := range strings.Fields(text) {
				owner, value, _ := strings.Cut(pair, "=")
				balancers[owner] = value
			}
			return balancers
		}
		wants, annotations := values(tt.wants), values(tt.other)
		in := Input{Observed: sharedFrontend(tt.has, strings.Fields(tt.on)...), Others: []string{"aa", "ab"}}
		for i, owner := range []string{"aa", "ab"} {
			value, planned := wants[owner]
			if !planned {
				continue
			}
			s := newTestParts(owner, int32(80+i)) //nolint:gosec // a port
			s.Frontends[0].PublicIP = "/pip/aa"
			switch value {
			case kept:
			case "leaves":
				s = gone(owner)
			default:
				s.Frontends[0].GatewayLoadBalancer, annotations[owner] = &value, value
			}
			in.Others = slices.DeleteFunc(in.Others, func(o string) bool { return o == owner })
			in.Services = append(in.Services, s)
		}
		in.GatewayLoadBalancersOf = func(rule string) []string {
			owner, _, _ := strings.Cut(rule, "-")
			return slices.DeleteFunc(strings.Split(annotations[owner], ","), func(id string) bool { return id == "" })
		}
		p := Make(in)
		failed := ""
		for owner, err := range p.Rejected {
			if failed += owner; !errors.Is(err, ErrGatewayLoadBalancer) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if got := p.Next.Frontends[0].GatewayLoadBalancerID(); got != tt.next || failed != tt.fails {
			t.Errorf("%s: next %q, rejected %v; want %q, rejected %q", tt.name, got, p.Rejected, tt.next, tt.fails)
		}
		in.Observed = p.Next
		if second := Make(in); len(second.Changes) > 0 {
			t.Errorf("%s: then %v", tt.name, spell(second.Changes))
		}
	}
}

func TestRevertedGatewayLoadBalancer(t *testing.T) {
	s := newTestParts("aa", 80)
	s.Frontends[0].GatewayLoadBalancer = new("/hub/in")
	p := Make(Input{Observed: sharedFrontend("", "aa"), Services: []ServiceParts{s}})
	if len(p.Changes) != 1 || p.Changes[0].RevertText() != "frontend aa: gatewayLoadBalancer none, Weir wants /hub/in" {
		t.Error(p.Changes)
	}
}

// The frontend of another client keeps its gateway load balancer. A Service that wants that one shares it.
func TestGatewayLoadBalancerOfOthers(t *testing.T) {
	for want, rejected := range map[string]bool{"x": false, "y": true, "": true} {
		b := sharedFrontend("x", "aa")
		b.Frontends[0].Name, b.Rules[0].Frontend = "edge", "edge"
		s := newTestParts("aa", 80)
		s.Frontends[0].GatewayLoadBalancer = &want
		p := Make(Input{Observed: b, Services: []ServiceParts{s}})
		if err := p.Rejected["aa"]; errors.Is(err, ErrGatewayLoadBalancer) != rejected || len(p.Changes) > 0 {
			t.Errorf("%q: %v, %v", want, err, spell(p.Changes))
		}
	}
}

// A frontend that gets another public IP keeps the gateway load balancer that another client set.
func TestGatewayLoadBalancerStaysAtAnotherAddress(t *testing.T) {
	s := newTestParts("aa", 80)
	s.Frontends[0].PublicIP = "/pip/other"
	p := Make(Input{Observed: sharedFrontend("x", "aa"), Services: []ServiceParts{s}})
	if got := fmt.Sprint(spell(p.Changes), p.Next.Frontends[0].GatewayLoadBalancerID()); got != "[change frontend aa]x" {
		t.Error(got)
	}
}
