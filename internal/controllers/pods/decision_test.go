// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// local returns a Local Service with probes and these pools.
func local(pools ...Pool) Service {
	return Service{Name: "web", HasAddress: true, IsLocal: true, HasProbes: true, IsKnown: true, Pools: pools}
}

func with(s Service, edit func(*Service)) Service {
	edit(&s)
	return s
}

var (
	member  = Pool{Name: "in", IsMember: true, IsDesired: true}
	joining = Pool{Name: "joining", IsDesired: true}
	early   = Pool{Name: "early", JoinsEarly: true}
	onReady = Pool{Name: "on-ready"}
)

func TestDecide(t *testing.T) {
	blocked := func(p Pool, reason Reason) Pool {
		p.Blocked = reason
		return p
	}
	for _, tt := range []struct {
		name     string
		services []Service
		want     Reason // empty: it waits
		reason   string
	}{
		{"no Service", nil, NoService, "no Service of Weir"},
		{"a member of the pool", []Service{local(member)}, InPool, "node n1 in every pool"},
		{"a member of both families' pools", []Service{local(member, member)}, InPool, ""},
		{"a member of one of two pools", []Service{local(member, joining)}, "", "no read has shown node n1 in pool joining yet"},
		{"a member for one of two Services", []Service{local(member), local(joining)}, "", "pool joining"},
		{"a member for the second of two Services", []Service{local(joining), local(member)}, "", "pool joining"},
		{"not Local", []Service{with(local(joining), func(s *Service) { s.IsLocal, s.HasProbes = false, false })}, AnyNode, ""},
		{"not Local, and one that is", []Service{with(local(), func(s *Service) { s.IsLocal = false }), local(joining)}, "", ""},
		{"not Local, and one with the node in its pool", []Service{with(local(), func(s *Service) { s.IsLocal = false }), local(member)}, InPool, ""},
		{"no address", []Service{with(local(joining), func(s *Service) { s.HasAddress, s.IsKnown = false, false })}, NoAddress, ""},
		{"no address, and rules that are read", []Service{with(local(joining), func(s *Service) { s.HasAddress = false })}, "", "pool joining"},
		{"no address, and rules without probes", []Service{with(local(joining), func(s *Service) { s.HasAddress, s.HasProbes = false, false })}, NoAddress, ""},
		{"no address, and the node joins once a pod is ready", []Service{with(local(onReady), func(s *Service) { s.HasAddress = false })}, NoAddress, ""},
		{"no probe that shows it", []Service{with(local(joining), func(s *Service) { s.HasProbes = false })}, NoProbe, "Service web"},
		{"no probe, and a member", []Service{with(local(member), func(s *Service) { s.HasProbes = false })}, InPool, ""},
		{"no probe, and one that waits", []Service{with(local(), func(s *Service) { s.HasProbes = false }), local(joining)}, "", ""},
		{"rules not read", []Service{with(local(), func(s *Service) { s.IsKnown = false })}, "", "have not been read"},
		{"rules without a pool", []Service{local()}, Foreign, ""},
		{"dry run", []Service{with(local(joining), func(s *Service) { s.Blocked = DryRun })}, DryRun, ""},
		{"rejected", []Service{with(local(joining), func(s *Service) { s.Blocked = Rejected })}, Rejected, ""},
		{"contested", []Service{with(local(joining), func(s *Service) { s.Blocked = Contested })}, Contested, ""},
		{"contested, and a member", []Service{with(local(member), func(s *Service) { s.Blocked = Contested })}, InPool, ""},
		{"a paused pool", []Service{local(blocked(joining, Paused))}, Paused, "pool joining"},
		{"a paused pool that has it", []Service{local(blocked(member, Paused))}, InPool, ""},
		{"a foreign pool", []Service{local(blocked(onReady, Foreign))}, Foreign, ""},
		{"a contested pool", []Service{local(blocked(joining, Contested))}, Contested, ""},
		{"a paused pool and one that waits", []Service{local(blocked(joining, Paused), joining)}, "", ""},
		{"a paused pool and one that has it", []Service{local(member, blocked(joining, Paused))}, Paused, ""},
		{"the node joins once a pod is ready", []Service{local(onReady)}, NodeNotMember, "once a pod there is ready"},
		{"the node joins early", []Service{local(early)}, "", ""},
		{"the node leaves", []Service{local(Pool{Name: "p", IsDesired: true, IsDown: true})}, NodeDown, "Down in pool p"},
		{"the node will leave, and is up", []Service{local(Pool{Name: "p", IsDesired: true, IsDown: true, IsMember: true})}, InPool, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, since := range []time.Time{{}, start.Add(1 - OpenTimeout)} {
				d := Decide(Pod{Node: "n1", WaitingSince: since}, tt.services, Leader{Leads: true}, start)
				if d.Opens != (tt.want != "") || d.Reason != tt.want || !strings.Contains(d.Message, tt.reason) {
					t.Errorf("got %+v, want %q with %q", d, tt.want, tt.reason)
				}
				if !d.Opens && (d.RecheckAfter <= 0 || d.RecheckAfter > recheckInterval) {
					t.Errorf("it is decided again after %s", d.RecheckAfter)
				}
			}
			if tt.want != "" {
				return
			}
			d := Decide(Pod{Node: "n1", WaitingSince: start.Add(-OpenTimeout)}, tt.services, Leader{Leads: true}, start)
			if !d.Opens || d.Reason != Timeout || !strings.Contains(d.Message, tt.reason) {
				t.Errorf("after %s: %+v", OpenTimeout, d)
			}
		})
	}
}

func TestStandbysWaitForTheLeader(t *testing.T) {
	pod := Pod{Node: "n1", WaitingSince: start.Add(-time.Hour)}
	for since, opens := range map[time.Duration]bool{0: false, LeaderTimeout - 1: false, LeaderTimeout: true, time.Hour: true} {
		d := Decide(pod, nil, Leader{RenewedAt: start.Add(-since)}, start)
		if d.Opens != opens || opens && d.Reason != LeaderAway || !opens && (d.RecheckAfter <= 0 || d.RecheckAfter > min(LeaderTimeout-since, recheckInterval)) {
			t.Errorf("renewed %s ago: %+v", since, d)
		}
	}
}

func TestNothingIsDecidedBeforeAPodHasANode(t *testing.T) {
	for _, leads := range []bool{true, false} {
		if d := Decide(Pod{WaitingSince: start.Add(-time.Hour)}, nil, Leader{Leads: leads}, start); d != (Decision{}) {
			t.Errorf("leads %t: %+v", leads, d)
		}
	}
}

// A pod that is never ready is decided ever more rarely, until it is ready.
func TestRechecksOfPodsThatAreNotReady(t *testing.T) {
	for _, leader := range []Leader{{Leads: true}, {RenewedAt: start.Add(time.Hour)}} {
		for after, want := range map[time.Duration]time.Duration{0: recheckInterval, 10 * time.Second: recheckInterval, time.Minute: 30 * time.Second, time.Hour: OpenTimeout} {
			pod := Pod{Node: "n1", SeenSince: start}
			leader.RenewedAt = start.Add(2 * time.Hour)
			if d := Decide(pod, []Service{local(joining)}, leader, start.Add(after)); d.RecheckAfter != want {
				t.Errorf("after %s: %s, want %s", after, d.RecheckAfter, want)
			}
			pod.WaitingSince = start.Add(after)
			if d := Decide(pod, []Service{local(joining)}, leader, start.Add(after)); d.RecheckAfter != recheckInterval {
				t.Errorf("ready after %s: %s", after, d.RecheckAfter)
			}
		}
	}
}

// The guide has a row for each reason, and shows which fail open.
func TestFailsOpen(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guide/readiness-gates.md")
	if err != nil {
		t.Fatal(err)
	}
	proven := map[Reason]bool{InPool: true, NoService: true, NoAddress: true, AnyNode: true}
	for _, r := range Reasons() {
		if r.FailsOpen() == proven[r] {
			t.Errorf("%s fails open: %t", r, r.FailsOpen())
		}
		_, row, found := strings.Cut(string(guide), "\n| `"+string(r)+"` |")
		row, _, _ = strings.Cut(row, "\n")
		if !found || strings.HasSuffix(row, "| yes |") != r.FailsOpen() {
			t.Errorf("the guide's row of %s: %q", r, row)
		}
	}
}

func drawPool(t *rapid.T) Pool {
	return Pool{
		Name: "p", Blocked: rapid.SampledFrom([]Reason{"", "", "", Paused, DryRun, Foreign, Contested}).Draw(t, "pool blocked"),
		IsMember: rapid.Bool().Draw(t, "member"), IsDesired: rapid.Bool().Draw(t, "desired"), IsDown: rapid.Bool().Draw(t, "down"), JoinsEarly: rapid.Bool().Draw(t, "early"),
	}
}

func drawService(t *rapid.T) Service {
	return Service{
		Name: "s", Blocked: rapid.SampledFrom([]Reason{"", "", "", DryRun, Rejected, Contested}).Draw(t, "blocked"),
		HasAddress: rapid.Bool().Draw(t, "address"), IsLocal: rapid.Bool().Draw(t, "local"), HasProbes: rapid.Bool().Draw(t, "probes"), IsKnown: rapid.Bool().Draw(t, "known"),
		Pools: rapid.SliceOfN(rapid.Custom(drawPool), 0, 3).Draw(t, "pools"),
	}
}

// Whatever changes, also the leader: a gate never closes, opens at the latest OpenTimeout after its pod is
// ready without it, and a decision that waits is made again in time for that. Where no process leads, LeaderTimeout
// comes on top.
func TestGatesOpenInTimeAndStayOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, pod := start, Pod{Node: "n1"}
		readyAt := start.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 3 * time.Minute}).Draw(t, "ready after"))
		renewedAt := start
		for now.Before(readyAt.Add(OpenTimeout + LeaderTimeout + recheckInterval)) {
			if !now.Before(readyAt) {
				pod.WaitingSince = readyAt
			}
			leads := rapid.Bool().Draw(t, "leads")
			if leads || rapid.Bool().Draw(t, "another leads") {
				renewedAt = now
			}
			pod.SeenSince = start
			d := Decide(pod, rapid.SliceOfN(rapid.Custom(drawService), 0, 3).Draw(t, "services"), Leader{leads, renewedAt}, now)
			switch {
			case pod.IsOpen && d != (Decision{}):
				t.Fatalf("an open gate: %+v", d)
			case d.Opens:
				if d.Reason == "" || d.Message == "" {
					t.Fatalf("no reason: %+v", d)
				}
				pod.IsOpen = true
			case pod.IsOpen:
			case d.RecheckAfter <= 0 || d.RecheckAfter > recheckInterval && (leads && !now.Before(readyAt) || d.RecheckAfter > OpenTimeout):
				t.Fatalf("it is never decided again: %+v", d)
			case leads && !now.Before(readyAt.Add(OpenTimeout)), now.Sub(renewedAt) >= LeaderTimeout:
				t.Fatalf("closed %s after the pod was ready: %+v", now.Sub(readyAt), d)
			}
			next := now.Add(max(d.RecheckAfter, time.Second))
			if now.Before(readyAt) && next.After(readyAt) {
				next = readyAt // an event of the pod
			}
			now = next
		}
	})
}

// A gate opens without a reason to fail only if no pool of a Local Service with an address lacks the node.
func TestNoGateOpensWithoutProof(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		services := rapid.SliceOfN(rapid.Custom(drawService), 0, 3).Draw(t, "services")
		d := Decide(Pod{Node: "n1"}, services, Leader{Leads: true}, start)
		if !d.Opens || d.Reason.FailsOpen() {
			return
		}
		for _, s := range services {
			for _, p := range s.Pools {
				if s.IsLocal && s.HasAddress && !p.IsMember {
					t.Fatalf("%s: %+v", d.Reason, s)
				}
			}
			if s.IsLocal && s.HasAddress && !s.IsKnown {
				t.Fatalf("%s: %+v", d.Reason, s)
			}
		}
	})
}
