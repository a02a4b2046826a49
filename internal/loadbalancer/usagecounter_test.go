// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"testing"

	"weir.dev/weir/internal/lb"
)

func with(name string, rules int) lb.LoadBalancer {
	b := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: name}, Etag: "1"}
	for range rules {
		b.Rules = append(b.Rules, lb.Rule{Pool: "Kubernetes"})
	}
	return b
}

// Concurrent writes of twins must not exceed the limit per machine.
func TestTwinsShareTheMachines(t *testing.T) {
	var b, fresh usageCounter
	if !fresh.ClaimRules(with("kubernetes", 0), with("kubernetes", 299)) || fresh.ClaimRules(with("kubernetes-internal", 0), with("kubernetes-internal", 1)) {
		t.Error("the first two are made at the same time")
	}
	b.RecordState(with("kubernetes", 100))
	b.RecordState(with("Kubernetes-internal", 100))
	b.RecordState(with("other", 200))
	if n := b.PeerCounts("kubernetes")["kubernetes"]; n != 100 {
		t.Errorf("%d beside it", n)
	}
	if !b.ClaimRules(with("kubernetes", 100), with("kubernetes", 199)) {
		t.Error("there is room")
	}
	if b.ClaimRules(with("kubernetes-internal", 100), with("kubernetes-internal", 101)) {
		t.Error("the twin has taken it")
	}
	if !b.ClaimRules(with("kubernetes-internal", 100), with("kubernetes-internal", 99)) {
		t.Error("fewer rules are always taken")
	}
	b.RecordState(with("kubernetes", 100)) // the write has failed
	if !b.ClaimRules(with("kubernetes-internal", 100), with("kubernetes-internal", 199)) {
		t.Error("there is room again")
	}
	b.RecordState(lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}})
	if n := b.PeerCounts("kubernetes-internal")["kubernetes"]; n != 0 {
		t.Errorf("%d beside one that was deleted", n)
	}
}
