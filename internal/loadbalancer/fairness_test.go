// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// A namespace with constantly new rejected Services leaves rounds to other rejected namespaces.
func TestASuspectNamespaceKeepsNoOtherOneOut(t *testing.T) {
	l, _ := rounds(&shows{}, &pools{}, func(Result) {})
	q, now := newQueue(l.LoadBalancers, l), time.Now()
	l.rejections.CountRejectedWrite("attacker", 0, now)
	l.rejections.CountRejectedWrite("victim", 0, now) // one innocent mistake
	bad := wants("attacker/bad", false)
	l.rejections.RecordRejection(bad.rejectionKey(), "other", errRejected, now.Add(-time.Minute)) // its pause is over
	q.addJobs(bad)
	victim := wants("victim/correct", false)
	q.addJobs(victim)
	for n := range 100 {
		q.addJobs(wants(fmt.Sprint("attacker/new", n), false))
		jobs, release := q.takeBatch(t.Context(), now)
		release()
		if slices.Contains(jobs, victim) {
			if n > 2 {
				t.Errorf("round %d", n)
			}
			return
		}
	}
	t.Error("the victim has had none of 100 rounds")
}

// A Service rejected by the bound of its namespace does not block a Service of another namespace.
func TestARefusedServiceTakesNoPlaceOfANeighbor(t *testing.T) {
	l, _ := rounds(&shows{}, &pools{}, func(Result) {})
	b := l.LoadBalancers
	b.group = nil
	b.cfg.Configurations = []service.Configuration{{Name: "one"}, {Name: "two"}}
	b.cache.read = true
	spec := func(rules int) *service.Spec {
		return &service.Spec{Rules: make([]lb.Rule, rules), Frontends: []service.Frontend{{}}}
	}
	for _, name := range []string{"one", "two"} {
		p := PlacementRequest{Service: "attacker/" + name, Owner: "a" + name, Desired: spec(1)}
		p.Desired.Configurations = []string{name}
		on, _, err := b.FindPlacement(t.Context(), p)
		if err != nil || on != name {
			t.Fatal(on, err)
		}
		p.LoadBalancers, p.Desired.Rules = []string{on}, make([]lb.Rule, 100) // edited: 100 ports; its bound is 90 or 50
		_, _, _ = b.FindPlacement(t.Context(), p)
	}
	if on, _, err := b.FindPlacement(t.Context(), PlacementRequest{Service: "victim/web", Owner: "v", Desired: spec(1)}); err != nil {
		t.Errorf("a neighbor's first Service with one rule: %q, %v", on, err)
	}
}

// A Service deleted before it was recorded leaves no placement.
func TestAForgottenServiceHasNoPlace(t *testing.T) {
	l, _ := rounds(&shows{}, &pools{}, func(Result) {})
	b := l.LoadBalancers
	b.group, b.cache.read = nil, true
	p := PlacementRequest{Service: "shop/web", Owner: "a1", Desired: &service.Spec{Rules: make([]lb.Rule, 3), Frontends: []service.Frontend{{}}}}
	if _, _, err := b.FindPlacement(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	b.ForgetService("shop/web", "a1")
	if _, ok := b.cache.byService["shop/web"]; ok {
		t.Error("its place is kept")
	}
}
