// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

func newTestHealthReader(reads *[]string, fails *error) *healthReader {
	balancer := lb.LoadBalancer{Rules: []lb.Rule{
		{Name: "a", Pool: "web", Probe: "p"}, {Name: "b", Pool: "web", Probe: "p"}, {Name: "c", Pool: "WEB", Probe: "q"},
		{Name: "d", Pool: "web"}, {Name: "e", Pool: "other", Probe: "p"},
	}}
	return &healthReader{
		getLoadBalancer: func(context.Context, lb.LoadBalancerID) (lb.LoadBalancer, error) { return balancer, nil },
		readHealth: func(_ context.Context, _ lb.LoadBalancerID, rule string) ([]lb.MemberHealth, error) {
			*reads = append(*reads, rule)
			return []lb.MemberHealth{{IP: netip.MustParseAddr("10.0.0.1"), Reason: "Down_Admin"}}, *fails
		},
		target: func(namespace, name string) (lb.PoolID, error) {
			if namespace != "shop" {
				return lb.PoolID{}, errors.New("there is no such pool")
			}
			return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", Name: "lb"}, Name: name}, nil
		},
		writes: ratelimit.New(0.5, time.Minute),
	}
}

// Each probe is read once, and again after ten seconds, also if the read failed.
func TestHealthIsReadOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads []string
		var fails error
		r := newTestHealthReader(&reads, &fails)
		read := func(want string, failed bool) {
			t.Helper()
			_, err := r.ReadPool(t.Context(), "shop", "web")
			if got := strings.Join(reads, ""); got != want || (err != nil) != failed {
				t.Errorf("read %q, %v; want %q", got, err, want)
			}
		}
		read("ac", false)
		time.Sleep(healthAge - 1)
		read("ac", false)
		fails = errors.New("no right")
		time.Sleep(time.Nanosecond)
		read("aca", true)
		read("aca", true)
		if _, err := r.ReadPool(t.Context(), "shop", "none"); err == nil || !strings.Contains(err.Error(), "no rule of pool none has a probe") {
			t.Errorf("%v", err)
		}
		time.Sleep(healthAge)
		for range 5 { // half of 500 in five minutes
			time.Sleep(50 * time.Second)
			for range 50 {
				r.writes.CountWrite("s", time.Now())
			}
		}
		time.Sleep(30 * time.Second)
		read("aca", true)
		time.Sleep(2 * time.Minute)
		read("acaa", true)
	})
}

func TestHealthOverHTTP(t *testing.T) {
	var reads []string
	var fails error
	server := httptest.NewServer(newTestHealthReader(&reads, &fails))
	defer server.Close()
	rules, err := FetchHealth(t.Context(), Connection{Server: server.URL}, "shop", "web")
	if err != nil || len(rules) != 2 || rules[0].Rule != "a" || len(rules[0].Members) != 1 || rules[0].Members[0].Reason != "Down_Admin" {
		t.Errorf("%+v, %v", rules, err)
	}
	fails = errors.New("403 AuthorizationFailed: The client 'x' does not have authorization to perform action 'Microsoft.Network/loadBalancers/loadBalancingRules/health/action' over scope '/s'")
	refused := httptest.NewServer(newTestHealthReader(&reads, &fails))
	defer refused.Close()
	const want = "Weir's identity lacks the action Microsoft.Network/loadBalancers/loadBalancingRules/health/action: assign it the role config/azure-role-health.json"
	if _, err := FetchHealth(t.Context(), Connection{Server: refused.URL}, "shop", "web"); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if _, err := FetchHealth(t.Context(), Connection{Server: server.URL}, "other", "web"); err == nil || err.Error() != "there is no such pool" {
		t.Errorf("%v", err)
	}
}
