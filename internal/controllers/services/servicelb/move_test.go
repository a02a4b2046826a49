// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

func newMove(on, removeFrom string) loadbalancer.Request {
	r := loadbalancer.Request{
		On: lb.LoadBalancerID{Name: on}, StatusAddresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")},
		Desired: &service.Spec{Internal: service.IsInternal(on), Frontends: []service.Frontend{{}}, Probes: []lb.Probe{{IntervalSeconds: 5}}},
	}
	for _, name := range strings.Fields(removeFrom) {
		r.RemoveFrom = append(r.RemoveFrom, lb.LoadBalancerID{Name: name})
	}
	return r
}

// Both load balancers serve only if the addresses differ, and the Service was on the former one.
func TestMovesThatKeepTheFormerLoadBalancer(t *testing.T) {
	for _, tt := range []struct {
		name, on, removeFrom, recorded string
		edit                           func(r *loadbalancer.Request)
		want                           bool
	}{
		{"internal, to another", "b-internal", "a-internal", "a-internal", nil, true},
		{"public to internal", "a-internal", "a", "a", nil, true},
		{"internal to public", "a", "a-internal", "A-Internal", nil, true},
		{"public, to another: with its address", "b", "a", "a", nil, false},
		{"from both to public", "b", "a a-internal", "a a-internal", nil, false},
		{"it was not there", "a", "a-internal", "a", nil, false},
		{"it stays", "a", "", "a", nil, false},
		{"it leaves", "", "a-internal", "a-internal", func(r *loadbalancer.Request) { r.Desired = nil }, false},
		{"no address is published", "a", "a-internal", "a-internal", func(r *loadbalancer.Request) { r.StatusAddresses = nil }, false},
		{"addresses are protected", "a", "a-internal", "a-internal", func(r *loadbalancer.Request) { r.ProtectAddresses = true }, false},
		{"it admits some clients", "a", "a-internal", "a-internal", func(r *loadbalancer.Request) { r.Desired.Access.HasRestriction = true }, false},
		{"it denies others", "b-internal", "a-internal", "a-internal", func(r *loadbalancer.Request) { r.Desired.Access.DenyOthers = true }, false},
		{"it has a Private Link Service", "b-internal", "a-internal", "a-internal", func(r *loadbalancer.Request) { r.Desired.Link = &service.PrivateLink{} }, false},
		{"a requested private address moves along", "b-internal", "a-internal", "a-internal", setStaticAddress, false},
		{"public to a requested private address", "a-internal", "a", "a", setStaticAddress, true},
	} {
		r := newMove(tt.on, tt.removeFrom)
		if tt.edit != nil {
			tt.edit(&r)
		}
		if got := new(MoveState).keepsFormer(r, strings.Fields(tt.recorded), time.Now()); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func setStaticAddress(r *loadbalancer.Request) {
	r.Desired.Frontends[0].Frontend.Static = true
}

// The new addresses are published when they are probed, and the former ones leave a minute later; a public one at once.
// Changes of the Service do not restart the time, another load balancer does.
func TestFormerLoadBalancerIsReleased(t *testing.T) {
	now := time.Now()
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	type step struct {
		at, second    int
		on, former    string
		keeps, public bool
	}
	for name, steps := range map[string][]step{
		"internal": {
			{0, 10, "b-internal", "a-internal", true, false},
			{4, 10, "b-internal", "a-internal", true, false},
			{12, 72, "b-internal", "a-internal", true, true},
			{50, 72, "b-internal", "a-internal", true, true},
			{72, 72, "b-internal", "a-internal", false, true},
			{90, 100, "a-internal", "b-internal", true, false}, // and back
			{100, 160, "a-internal", "b-internal", true, true},
		},
		"public to internal": {
			{0, 10, "a-internal", "a", true, false},
			{10, 11, "a-internal", "a", true, true},
			{11, 11, "a-internal", "a", false, true},
		},
	} {
		var m MoveState
		for _, s := range steps {
			r := newMove(s.on, s.former)
			r.Desired.Owner = strings.Repeat("x", s.at) // it changes
			keeps, recheckAt := m.keepsFormer(r, []string{s.former, s.on}, at(s.at)), at(s.second)
			if keeps {
				recheckAt = m.advance(r, []string{s.former, s.on}, at(s.at))
			}
			if keeps != s.keeps || m.publishes() != s.public || !recheckAt.Equal(at(s.second)) {
				t.Errorf("%s: at %d: keeps %v, publishes %v, again at %s", name, s.at, keeps, m.publishes(), recheckAt.Sub(now))
			}
		}
	}
}

func TestProbeWait(t *testing.T) {
	for intervals, want := range map[string]time.Duration{"": time.Second, "\x05": 10 * time.Second, "\x05\x0f": 30 * time.Second, "\xff": time.Minute} {
		var probes []lb.Probe
		for _, seconds := range []byte(intervals) {
			probes = append(probes, lb.Probe{IntervalSeconds: int32(seconds)})
		}
		if got := probeWait(probes); got != want {
			t.Errorf("%v: %s, want %s", slices.Clone([]byte(intervals)), got, want)
		}
	}
}
