// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/service"
)

var place = lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg"}

// azure has one load balancer with a pool of a Service and one of nodes.
type azure struct{ loadbalancer.Azure }

func (azure) GetLoadBalancer(_ context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	if id.Name != "kubernetes" {
		return lb.LoadBalancer{}, &armerror.Fault{Class: armerror.Stale, Err: errors.New("it is not there")}
	}
	return lb.LoadBalancer{ID: id, Etag: "1", Pools: []lb.Pool{{ID: lb.PoolID{LoadBalancer: id, Name: "shop-web"}, Etag: "1"}, {ID: lb.PoolID{LoadBalancer: id, Name: "nodes"}, Etag: "1"}}}, nil
}

// cluster has four Services without desired resources.
type cluster struct{ loadbalancer.Cluster }

func (*cluster) PlaceNodes(context.Context) error { return nil }
func (*cluster) Services() []dryrun.Service {
	return []dryrun.Service{
		{Namespace: "shop", Name: "held", Owner: "a1", BlockedReason: "held", NoEffect: "none"},
		{Namespace: "shop", Name: "kept", Owner: "a2", RetainedReason: "kept"},
		{Namespace: "shop", Name: "web", Owner: "a3"},
		{Namespace: "team", Name: "bad", Owner: "a4", NoEffect: "none"},
	}
}

func (*cluster) UnmanagedReason(namespace, name string) error {
	return fmt.Errorf("%s/%s is not served", namespace, name)
}

func (*cluster) BuildRequest(_ context.Context, name string) (req loadbalancer.Request, refused string, err error) {
	if name == "team/bad" {
		return req, "it is refused", nil
	}
	return req, "", nil
}

func (*cluster) ResolveResult(context.Context, loadbalancer.Result) error { return nil }

func (*cluster) Pools() []dryrun.Pool {
	pool := func(name, service, on, remaining string) dryrun.Pool {
		id := place
		id.Name = on
		return dryrun.Pool{BackendPool: name, Service: service, ID: lb.PoolID{LoadBalancer: id, Name: strings.ReplaceAll(name, "/", "-")}, Ref: schedule.Ref{Name: name}, SkippedReason: remaining}
	}
	return []dryrun.Pool{
		pool("nodes", "", "kubernetes", ""), pool("other/gone", "other/gone", "elsewhere", ""), pool("shop/lost", "shop/web", "kubernetes", ""),
		pool("shop/paused", "shop/web", "kubernetes", "it is paused"), pool("shop/web", "shop/web", "kubernetes", ""),
	}
}

func (*cluster) DesiredPool(schedule.Ref) (diff.Desired, error) {
	return diff.Desired{Addresses: []lb.Address{{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}}, IsOwnAddress: func(netip.Addr) bool { return true }, IsExclusive: true}, nil
}

// A plan has the Services and pools in scope, and the reason for each that is left unchanged.
func TestThePlanOfAScope(t *testing.T) {
	tests := []struct {
		scope   dryrun.Scope
		unasked string
		pools   int // to write
		left    string
	}{
		{dryrun.Scope{}, "[{shop/held  held } {shop/kept   kept} {team/bad it is refused  }]", 2,
			"[{other/gone load balancer elsewhere is not there} {shop/lost load balancer kubernetes has no pool shop-lost} {shop/paused it is paused}]"},
		{dryrun.Scope{Namespace: "shop"}, "[{shop/held  held } {shop/kept   kept}]", 1,
			"[{shop/lost load balancer kubernetes has no pool shop-lost} {shop/paused it is paused}]"},
		{dryrun.Scope{Namespace: "shop", Service: "kept"}, "[{shop/kept   kept}]", 0, "[]"},
		{dryrun.Scope{Namespace: "team"}, "[{team/bad it is refused  }]", 0, "[]"},
	}
	for _, tt := range tests {
		c := &cluster{}
		o, err := dryrun.Plan(t.Context(), newRehearsal(c), c, tt.scope, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(o.SkippedServices); got != tt.unasked {
			t.Errorf("%+v: unasked %s, want %s", tt.scope, got, tt.unasked)
		}
		if got := fmt.Sprint(o.SkippedPools); got != tt.left || o.Changes.PoolWrites != tt.pools {
			t.Errorf("%+v: %d pools are written, left are %s", tt.scope, o.Changes.PoolWrites, got)
		}
		if o.Owners["a3"] != "shop/web" || o.NoEffect["shop/web"] != "" || o.IsEmpty() {
			t.Errorf("%+v: %+v", tt.scope, o)
		}
	}
	c := &cluster{}
	if _, err := dryrun.Plan(t.Context(), newRehearsal(c), c, dryrun.Scope{Namespace: "shop", Service: "none"}, true); err == nil || err.Error() != "shop/none is not served" {
		t.Errorf("a Service that is not there: %v", err)
	}
}

func newRehearsal(c loadbalancer.Cluster) *dryrun.Simulator {
	return dryrun.New(loadbalancer.Config{
		Settings: loadbalancer.Settings{Place: place, Configurations: []service.Configuration{{Name: "kubernetes"}}}, Cluster: c,
	}, azure{})
}

// Services that would lose an address are counted. A rejection does not make a plan incomplete, a
// missing response of Azure does.
func TestOutcome(t *testing.T) {
	single, two := netip.MustParseAddr("20.0.0.1"), netip.MustParseAddr("20.0.0.2")
	result := func(name string, desired bool, err error, shown, got []netip.Addr) loadbalancer.Result {
		r := loadbalancer.Result{Request: loadbalancer.Request{Service: name, StatusAddresses: shown}, Err: err, Addresses: got}
		if desired {
			r.Desired = &service.Spec{}
		}
		return r
	}
	throttled := &armerror.Fault{Class: armerror.Retriable, Err: errors.New("429")}
	o := dryrun.PlanResult{Results: []loadbalancer.Result{
		result("keeps", true, nil, []netip.Addr{single}, []netip.Addr{single, two}),
		result("loses", true, nil, []netip.Addr{single, two}, []netip.Addr{two}),
		result("goes", false, nil, []netip.Addr{single}, nil),
		result("refused", true, errors.New("no such public IP"), []netip.Addr{single}, nil),
	}}
	if n, err := o.CountLosses(), o.CheckComplete(); n != 1 || err != nil {
		t.Errorf("%d lose an address, want 1; %v", n, err)
	}
	o.Results = append(o.Results, result("a", true, throttled, nil, nil))
	if err := o.CheckComplete(); err == nil || err.Error() != "the plan is not complete: Service a: 429" {
		t.Errorf("got %v", err)
	}
	o.Results = append(o.Results, result("b", true, throttled, nil, nil))
	if err := o.CheckComplete(); err == nil || err.Error() != "the plan is not complete: Service a: 429 (and 1 more)" {
		t.Errorf("got %v", err)
	}
}
