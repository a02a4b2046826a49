// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

func undo(reason string) *phase.UserRequest {
	w := wish(reason)
	w.Undo = true
	return w
}

// dies runs a process and kills it before or after its n-th call takes effect. It reports whether
// the process got that far.
func (w *world) dies(t *testing.T, at int, after bool) (died bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, kill := context.WithTimeout(t.Context(), time.Hour)
		defer kill()
		n := 0
		w.fails = func(string) error {
			if n++; n < at {
				return nil
			}
			died = true
			kill()
			if after && n == at {
				return nil
			}
			return &armerror.Fault{Class: armerror.Retriable, Code: "x", Err: context.Canceled}
		}
		New(w.config()).Run(ctx)
	})
	w.fails = nil
	return died
}

// left returns a world whose machine has left, with nothing else changed.
func left(t *testing.T) *world {
	t.Helper()
	w := newWorld()
	w.fails = func(call string) error {
		if call == all[4] {
			w.asked.Stop = wish("")
		}
		return nil
	}
	if w.run(t) || len(w.nics[0].IPConfigurations[0].Pools) > 0 || !w.kept.TrafficStopped {
		t.Fatalf("no machine has left: %q", w.calls)
	}
	w.fails, w.asked.Stop = nil, nil
	return w
}

// comesBack fails unless everything is restored and stays so until a user starts a migration, which
// then completes.
func (w *world) comesBack(t *testing.T, about string) {
	t.Helper()
	before := newWorld()
	if !w.run(t) || !slices.Equal(w.nics[0].IPConfigurations[0].Pools, before.nics[0].IPConfigurations[0].Pools) || w.balancer == nil || w.balancer.SKU != lb.Basic ||
		w.ip.Address != first || w.ip.UsedBy != before.ip.UsedBy || w.kept.CompletedUndo == nil || phase.FormatUserRequests(w.asked) != "" {
		t.Fatalf("%s: undone %v; %+v, %+v after %q\n%s", about, w.kept.CompletedUndo, w.nics[0], w.ip, w.calls, w.said.String())
	}
	sent := len(w.writes())
	if !w.run(t) || len(w.writes()) > sent {
		t.Fatalf("%s: it begins again though nobody has asked: %q", about, w.writes()[sent:])
	}
	w.asked.Run = wish("")
	if !w.run(t) || !w.kept.Done || w.kept.CompletedUndo != nil || w.ip.SKU != lb.Standard || w.ip.Address != first || w.asked.Run != nil {
		t.Fatalf("%s: asked for again, %+v after %q", about, w.ip, w.calls[sent:])
	}
}

// An undo before the point of no return restores everything, and the rest of Weir continues.
func TestAMigrationIsTakenBack(t *testing.T) {
	for at, call := range all[:6] {
		w, once := newWorld(), true
		w.fails = func(got string) error {
			if got == call && once {
				once, w.asked.Stop = false, undo("the shop is open")
			}
			return nil
		}
		w.comesBack(t, fmt.Sprintf("at call %d, %q", at, call))
		if !strings.Contains(w.said.String(), `was undone: load balancers remain Basic until weir migrate run" by=jane`) {
			t.Errorf("nobody says so:\n%s", w.said.String())
		}
	}
}

// A process that runs the undo is killed before and after each call; the next one continues.
func TestUndoSurvivesKill(t *testing.T) {
	for _, after := range []bool{false, true} {
		killed := 0
		for at := 1; ; at++ {
			w := left(t)
			w.asked.Stop = undo("")
			if !w.dies(t, at, after) {
				break
			}
			killed++
			w.comesBack(t, fmt.Sprintf("killed at call %d, after it %t", at, after))
		}
		if killed < 6 {
			t.Errorf("it has %d calls alone", killed)
		}
	}
}

// Azure rejects writes, is unreachable, or does not respond: the undo is retried until it succeeds.
func TestTakingItBackIsTriedAgain(t *testing.T) {
	for _, call := range []string{"list load balancers", "list public IPs", "list interfaces", "list scale sets", "put interface n1", "keep that it is undone"} {
		for _, class := range []armerror.Class{armerror.Retriable, armerror.Terminal} {
			w, times := left(t), 3
			w.asked.Stop = undo("")
			w.fails = func(got string) error {
				if got != call || times == 0 {
					return nil
				}
				times--
				return &armerror.Fault{Class: class, Code: "x", Err: errors.New("no")}
			}
			w.comesBack(t, fmt.Sprint(call, " ", class))
			if times > 0 {
				t.Errorf("%s was not called", call)
			}
		}
	}
}

// Withdrawing the stop during an undo continues the migration.
func TestAStopThatIsTakenBackWhileItIsUndone(t *testing.T) {
	for _, call := range []string{"put interface n1", "keep that it is undone"} {
		w := left(t)
		w.asked.Stop = undo("")
		w.fails = func(got string) error {
			if got == call {
				w.asked.Stop = nil
			}
			return nil
		}
		if !w.run(t) || !w.kept.Done || w.kept.CompletedUndo != nil || w.ip.Address != first || w.ip.SKU != lb.Standard {
			t.Errorf("%s: %+v after %q", call, w.ip, w.calls)
		}
	}
}

// A deletion can't be undone. An undo request after a user deleted the load balancer acts as a
// stop, with a reason.
func TestIrreversibleSteps(t *testing.T) {
	w := left(t)
	w.asked.Stop, w.balancer, w.ip.UsedBy = undo(""), nil, ""
	sent := len(w.toAzure())
	if w.run(t) || len(w.toAzure()) > sent || !strings.Contains(w.said.String(), "it cannot be taken back: another client has deleted or recreated one of its load balancers") {
		t.Errorf("%q\n%s", w.toAzure()[sent:], w.said.String())
	}
	s, err := BuildStatus(t.Context(), w.config(), "me")
	if err != nil || s.State != StateStopped || !strings.Contains(s.Text(), "\nIt cannot be taken back: another client has deleted or recreated one of its load balancers") {
		t.Errorf("%v:\n%s", err, s.Text())
	}
	w.asked = phase.UserRequests{}
	if !w.run(t) || !w.kept.Done || w.ip.Address != first || w.ip.SKU != lb.Standard {
		t.Errorf("%+v after %q", w.ip, w.calls)
	}
}

// Preflight findings block again after an undo.
func TestRestartAfterARollback(t *testing.T) {
	w := left(t)
	w.asked.Stop = undo("")
	if !w.run(t) || w.kept.CompletedUndo == nil {
		t.Fatal(w.said.String())
	}
	sent := len(w.toAzure())
	w.asked.Run, w.balancer.Rules = wish(""), []lb.Rule{{Name: "ssh"}}
	if !w.run(t) || len(w.toAzure()) > sent || w.asked.Run != nil || !strings.Contains(w.said.String(), "rule ssh of load balancer kubernetes belongs to no served Service") {
		t.Errorf("%q\n%s", w.toAzure()[sent:], w.said.String())
	}
}

// A migration that failed before a machine left is undone by the next leader.
func TestAbandonedMigrationIsRolledBack(t *testing.T) {
	w := newWorld()
	w.fails = func(call string) error {
		if call == "put interface n1" {
			return refusal("AuthorizationFailed")
		}
		return nil
	}
	if !w.run(t) || !w.kept.IsOpen() {
		t.Fatalf("%q\n%s", w.calls, w.said.String())
	}
	synctest.Test(t, func(t *testing.T) {
		m := New(w.config())
		m.Run(t.Context())
		w.asked.Stop = undo("")
		m.WatchRequests(t.Context())
	})
	if w.again != 1 {
		t.Fatalf("the lead was given up %d times", w.again)
	}
	w.fails = nil
	w.comesBack(t, "given up")
}

// A journal with load balancers of another cluster can't be undone either.
func TestAStrangeJournalIsNotTakenBack(t *testing.T) {
	w := newWorld()
	w.kept = w.stock()
	w.kept.LoadBalancers[0].ID.Name, w.asked.Stop = "another", undo("")
	w.listens(t, false)
	if w.again > 0 || len(w.writes()) > 0 || !strings.Contains(w.said.String(), "which is not the cluster's any more") {
		t.Errorf("the lead was given up %d times, after %q\n%s", w.again, w.calls, w.said.String())
	}
}

// Services get an event after the undo.
func TestServicesGetRollbackEvents(t *testing.T) {
	w := left(t)
	w.asked.Stop = undo("")
	w.comesBack(t, "")
	if want := "ns/web false MigrationUndone: The migration was undone: its load balancer remains Basic, with 198.18.0.1, and machines are in its pools again"; w.told[1] != want {
		t.Errorf("%q", w.told)
	}
}

// The status during and after an undo.
func TestTheStatusOfWhatIsTakenBack(t *testing.T) {
	w := left(t)
	want := func(leader string, verdict State, text string) {
		t.Helper()
		s, err := BuildStatus(t.Context(), w.config(), leader)
		if err != nil || s.State != verdict || !strings.Contains(s.Text(), text) {
			t.Errorf("%s, %v, want %s with %q:\n%s", s.State, err, verdict, text, s.Text())
		}
	}
	want("me", StateRunning, "\n2 of 6 steps are done; next is Delete.\nUntil Delete starts, weir migrate stop --undo reverts all of it; public IPs remain Static.\n")
	w.asked.Stop = undo("not today")
	want("me", StateUndoing, "Undoing, requested by jane, at 2001-09-09T01:46:40Z: not today\nMachines join the Basic load balancers again, and nothing else of Weir is written meanwhile.\nnext: Rejoin   network interfaces join again: n1\n")
	want("", StateNoLeader, "")
	if !w.run(t) {
		t.Fatal(w.said.String())
	}
	want("me", StateUndone, "Undone by jane, at 2001-09-09T01:46:40Z: not today\nLoad balancers are Basic, with machines in their pools as before; public IPs that became Static remain Static. weir migrate run starts again.\n")
	w.asked.Run = wish("")
	want("me", StateNotStarted, "Requested by jane")
	w.asked.Run, w.balancer.Rules = nil, []lb.Rule{{Name: "ssh"}}
	want("me", StateBlocked, "stops it (ForeignRule)")
	w.balancer.SKU, w.ip.SKU = lb.Standard, lb.Standard
	want("me", StateNotNeeded, "")
}
