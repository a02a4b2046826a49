// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// The status starts with the state and writes nothing.
func TestVerdicts(t *testing.T) {
	begun := func(w *world) { w.kept = w.stock() }
	for _, tt := range []struct {
		about    string
		expect   func(*world)
		leader   string
		want     State
		wantText string
	}{
		{"nothing is Basic", func(w *world) { w.balancer.SKU, w.ip.SKU = lb.Standard, lb.Standard }, "me", StateNotNeeded, "Not needed: no load balancer of the cluster is Basic.\n"},
		{"nobody has begun", func(*world) {}, "me", StateNotStarted, "on load balancer kubernetes, Basic; public IP Basic and Dynamic\n"},
		{"somebody's rule", func(w *world) { w.balancer.Rules = []lb.Rule{{Name: "ssh"}} }, "me", StateBlocked, "stops it (ForeignRule): rule ssh"},
		{"nobody has written the SKU out", func(w *world) { w.hears = false }, "me", StateBlocked, "stops it (NoSKU): azure.json"},
		{"somebody has asked for it", func(w *world) { w.asked.Run = wish("") }, "me", StateNotStarted, "Requested by jane, at 2001-09-09T01:46:40Z\nIt starts"},
		{"it was begun", begun, "me", StateRunning, "Running: me leads, and writes nothing else meanwhile.\n0 of 6 steps are done; next is Static.\n"},
		{"nobody leads", begun, "", StateNoLeader, "Waiting: no Weir leads according to its Lease."},
		{"a stop that is not heard", func(w *world) { begun(w); w.asked.Stop = wish("") }, "me", StateStopping, "Stopping, requested by jane, at 2001-09-09T01:46:40Z\n"},
		{"a stop before the beginning", func(w *world) { w.asked.Stop = wish("") }, "me", StateStopped, "It does not start until weir migrate resume"},
		{"nobody is there to hear it", func(w *world) { begun(w); w.asked.Stop = wish("") }, "", StateStopped, "Stopped by jane, at 2001-09-09T01:46:40Z\n"},
		{"a stop that is heard", func(w *world) {
			begun(w)
			w.asked.Stop = wish("not today")
			w.kept.StopSeenAt, w.ip.Static = w.asked.Stop.At, true
		}, "me", StateStopped, "Stopped by jane, at 2001-09-09T01:46:40Z: not today\nNothing else of Weir is written meanwhile. weir migrate resume has it go on.\n1 of 6 steps are done; next is Detach.\n"},
		{"the load balancer is gone", func(w *world) {
			begun(w)
			w.balancer, w.ip.UsedBy, w.ip.Static, w.kept.TrafficStopped = nil, "", true, true
		}, "me", StateRunning, "kept by its public IP, on no load balancer; public IP Basic and Static\n"},
		{"somebody has taken the public IP", func(w *world) {
			begun(w)
			w.ip.UsedBy = "/another"
			w.balancer = nil
		}, "me", StateRunning, "in use by /another; public IP Basic and Dynamic\n"},
		{"rules that came too late", func(w *world) { begun(w); w.kept.TrafficStopped = true; w.balancer.Rules = []lb.Rule{{Name: "ssh"}} }, "me", StateRunning, "Running"},
	} {
		w := newWorld()
		tt.expect(w)
		s, err := BuildStatus(t.Context(), w.config(), tt.leader)
		if err != nil || s.State != tt.want || !strings.Contains(s.Text(), tt.wantText) {
			t.Errorf("%s: %s, %v, want %s with %q:\n%s", tt.about, s.State, err, tt.want, tt.wantText, s.Text())
		}
		if len(w.writes()) > 0 {
			t.Errorf("%s: it has written %q", tt.about, w.calls)
		}
	}
}

// After the migration each address is shown with its location, also a claim and one given up.
func TestTheStatusOfAnEnd(t *testing.T) {
	w := newWorld()
	if !w.run(t) {
		t.Fatal(w.said.String())
	}
	s, err := BuildStatus(t.Context(), w.config(), "me")
	want := "Done: 1 address is where it was.\n\nload balancer kubernetes\n  198.18.0.1 (public IP kubernetes-a1, frontend a1): on load balancer kubernetes, Standard; public IP Standard and Static\n"
	if err != nil || s.State != StateDone || s.Text() != want {
		t.Errorf("%v:\n%s", err, s.Text())
	}
	var second Status
	if text, err := s.JSON(); err != nil || json.Unmarshal(text, &second) != nil || second.Text() != want || second.StepsDone != 6 || second.Addresses[0].IP != first {
		t.Errorf("for programs: %v\n%s", err, text)
	}
	lost := internal(9, 10)
	lost.taken(true, "10.0.0.10")
	if !lost.run(t) {
		t.Fatal(lost.said.String())
	}
	s, err = BuildStatus(t.Context(), lost.config(), "me")
	if err != nil || s.State != StateDone || !strings.Contains(s.Text(), "Done: Azure refuses 10.0.0.10, whose Services get no other address") || !strings.Contains(s.Text(), "weir migrate give-up 10.0.0.10") ||
		!strings.Contains(s.Text(), "10.0.0.10 (private, frontend a10): on no load balancer; its Service requests it") {
		t.Errorf("%v:\n%s", err, s.Text())
	}
	if lost.asked, err = lost.asked.ReleaseAddress(lost.kept, netip.MustParseAddr("10.0.0.10"), phase.UserRequest{By: "jane"}); err != nil {
		t.Fatal(err)
	}
	s, err = BuildStatus(t.Context(), lost.config(), "me")
	if err != nil || !strings.Contains(s.Text(), "Done: of 2 addresses, 1 not where it was") || !strings.Contains(s.Text(), "10.0.0.10 (private, frontend a10): given up by jane") {
		t.Errorf("%v:\n%s", err, s.Text())
	}
}

// Each phase counts the completed ones.
func TestStepsThatAreDone(t *testing.T) {
	w := newWorld()
	w.kept = w.stock()
	done := map[int]bool{}
	w.fails = func(call string) error {
		if strings.HasPrefix(call, "put ") || strings.HasPrefix(call, "delete ") {
			w.mu.Unlock()
			defer w.mu.Lock()
			s, err := BuildStatus(context.WithoutCancel(t.Context()), w.config(), "me") // it runs in its own synctest bubble
			if err != nil || s.Phase != phase.Phases()[s.StepsDone] {
				t.Errorf("%s: %+v, %v", call, s, err)
			}
			done[s.StepsDone] = true
		}
		return nil
	}
	if !w.run(t) || len(done) != 5 {
		t.Errorf("%v after %q", done, w.calls)
	}
}
