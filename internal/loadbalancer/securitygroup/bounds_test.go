// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"errors"
	"net/netip"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// A promise holds until the rules are written: each attempt is checked again, and the load balancer may be
// written already.
func TestAPromiseHoldsUntilItIsWritten(t *testing.T) {
	claim := func(tags ...string) service.SecurityClaim {
		var rules []service.AccessRule
		for _, tag := range tags {
			rules = append(rules, service.AccessRule{Access: lb.Allow, Family: lb.IPv4, Protocol: "Tcp", Sources: []string{tag}, Ports: []string{"80"},
				Destinations: []netip.Addr{netip.MustParseAddr("192.0.2.1")}})
		}
		return service.NewSecurityClaim("shop", rules)
	}
	exceeded := errors.New("exceeded")
	usage := service.ObservedSecurityUsage(service.SecurityInput{})
	l := usageTracker{usage: usage}
	admits := func(c service.SecurityClaim, answer error) error {
		return l.reserveClaim("a", c, func(*service.SecurityUsage, map[string]service.SecurityClaim) error { return answer })
	}
	for _, step := range []struct {
		about  string
		claim  service.SecurityClaim
		answer error
		want   error
	}{
		{"within the bound", claim("a", "b"), nil, nil},
		{"the bound fell", claim("a", "b"), exceeded, nil},
		{"fewer", claim("a"), exceeded, nil},
		{"more again", claim("a", "b"), exceeded, exceeded},
		{"no promise is left", claim("a"), exceeded, exceeded},
		{"within the bound again", claim("a"), nil, nil},
	} {
		if err := admits(step.claim, step.answer); !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.about, err, step.want)
		}
	}
	requests := []*Request{{Demand: Demand{Owner: "a"}}}
	l.recordPlan(requests, lb.SecurityGroup{}, service.SecurityPlan{Before: usage, After: usage}, false)
	if err := admits(claim("a"), exceeded); err != nil {
		t.Errorf("after a write that failed: %v", err)
	}
	l.recordPlan(requests, lb.SecurityGroup{}, service.SecurityPlan{Before: usage, After: usage}, true)
	if err := admits(claim("a"), exceeded); !errors.Is(err, exceeded) {
		t.Errorf("after the write: %v", err)
	}
}
