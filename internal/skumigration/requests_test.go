// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

func wish(reason string) *phase.UserRequest {
	return &phase.UserRequest{At: time.Unix(1e9, 0).UTC(), By: "jane", Reason: reason}
}

// toAzure returns the writes to Azure.
func (w *world) toAzure() []string {
	return slices.DeleteFunc(w.writes(), func(call string) bool { return strings.HasPrefix(call, "keep ") })
}

// After a stop request, no process writes to Azure once running requests have ended, and an open
// journal records the stop. Without the stop the migration completes.
func TestStopRequestIsHandled(t *testing.T) {
	for at, call := range all[:len(all)-1] {
		w := newWorld()
		w.fails = func(got string) error {
			if got == call {
				w.asked.Stop = wish("not today")
			}
			return nil
		}
		for range 2 { // the second process finds the stop
			if w.run(t) {
				t.Fatalf("stopped at %q it has ended: %q", call, w.calls)
			}
		}
		// A round writes the journal, then one kind of resource, and completes.
		last := at + 1
		if call == all[0] || call == all[2] { // the journal and its write are one round
			last++
		}
		want := slices.DeleteFunc(slices.Clone(all[:last]), func(c string) bool { return strings.HasPrefix(c, "keep ") })
		if got := w.toAzure(); !slices.Equal(got, want) {
			t.Errorf("stopped at %q it has written %q, want %q", call, got, want)
		}
		if !w.kept.StopSeenAt.Equal(w.asked.Stop.At) || !strings.Contains(w.said.String(), `by=jane`) || !strings.Contains(w.said.String(), `why="not today" begun=true`) {
			t.Errorf("stopped at %q: heard %s\n%s", call, w.kept.StopSeenAt, w.said.String())
		}
		w.asked, w.fails = phase.UserRequests{}, nil
		if !w.run(t) || !w.kept.Done || w.ip.Address != first || w.ip.SKU != lb.Standard {
			t.Errorf("stopped at %q, and taken back: %+v after %q", call, w.ip, w.calls)
		}
	}
}

// With a stop at the start nothing is written, not even the journal, and little is read. The
// waiting process continues when the stop is withdrawn.
func TestAStopBeforeTheBeginning(t *testing.T) {
	w := newWorld()
	w.asked.Stop = wish("")
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		go func() {
			New(w.config()).Run(t.Context())
			close(done)
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(w.calls) > 5 || len(w.writes()) > 0 {
			t.Errorf("it was stopped: %q", w.calls)
		}
		w.mu.Lock()
		w.asked = phase.UserRequests{}
		w.mu.Unlock()
		<-done
	})
	if !w.kept.Done || w.ip.Address != first || !strings.Contains(w.said.String(), "continues: the stop was withdrawn") {
		t.Errorf("%+v after %q\n%s", w.ip, w.calls, w.said.String())
	}
}

// A stop without anything to migrate blocks nothing.
func TestAStopWithNothingToMigrate(t *testing.T) {
	w := newWorld()
	w.asked.Stop = wish("")
	w.balancer.SKU, w.ip.SKU = lb.Standard, lb.Standard
	if !w.run(t) || len(w.writes()) > 0 {
		t.Errorf("%q", w.calls)
	}
	w = newWorld()
	w.asked.Stop = wish("")
	if w.manual = true; !w.run(t) || len(w.calls) > 0 {
		t.Errorf("nobody wants it: %q", w.calls)
	}
}

// listens runs a migration and then Listen for a minute, during which a user requests a migration
// if asks is true.
func (w *world) listens(t *testing.T, asks bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		m := New(w.config())
		m.Run(ctx)
		time.AfterFunc(30*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if asks {
				w.asked.Run = wish("")
			}
		})
		listening, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		m.WatchRequests(listening)
	})
}

// Without automatic start, the leader gives up its lead on request; the next one migrates and
// removes the request.
func TestAMigrationThatIsAskedFor(t *testing.T) {
	w := newWorld()
	w.manual, w.hears = true, true
	w.listens(t, false)
	if w.again > 0 || len(w.calls) > 0 {
		t.Fatalf("nobody has asked: the lead was given up %d times, after %q", w.again, w.calls)
	}
	w.listens(t, true)
	if w.again != 1 || len(w.calls) > 0 || w.asked.Run == nil {
		t.Fatalf("somebody has asked: the lead was given up %d times, after %q", w.again, w.calls)
	}
	w.listens(t, false)
	if w.again != 1 || !w.kept.Done || w.ip.Address != first || w.asked.Run != nil {
		t.Errorf("the lead was given up %d times, after %q", w.again, w.calls)
	}
	writes := len(w.calls)
	w.listens(t, false)
	if w.again != 1 || len(w.calls) > writes {
		t.Errorf("it is done: the lead was given up %d times, after %q", w.again, w.calls[writes:])
	}
}

// A blocked migration answers the request, so that no further leader gives up its lead. After
// fixing the cause, the user must request it again.
func TestAMigrationThatIsAskedForAndCannotStart(t *testing.T) {
	w := newWorld()
	w.hears, w.asked.Run, w.balancer.Rules = true, wish(""), []lb.Rule{{Name: "ssh"}}
	w.listens(t, false)
	if w.again > 0 || w.asked.Run != nil || !slices.Equal(w.writes(), []string{"keep that it was heard"}) {
		t.Fatalf("the lead was given up %d times, after %q", w.again, w.calls)
	}
	w.listens(t, true)
	if w.again != 1 || w.asked.Run == nil {
		t.Fatalf("somebody has asked: the lead was given up %d times, after %q", w.again, w.calls)
	}
	w.balancer.Rules = nil
	w.listens(t, false)
	if w.again != 1 || !w.kept.Done || w.asked.Run != nil {
		t.Errorf("the lead was given up %d times, after %q", w.again, w.calls)
	}
}

// If Azure is unreadable at the start, everything else continues, and the lead is given up once
// Azure shows that anything is Basic.
func TestAzureDoesNotAnswerTheFirstLook(t *testing.T) {
	for _, sku := range []lb.SKU{lb.Basic, lb.Standard} {
		w := newWorld()
		w.balancer.SKU, w.ip.SKU = sku, sku
		away := true
		w.fails = func(call string) error {
			if call == "list load balancers" && away {
				away = len(w.calls) < 3
				return &armerror.Fault{Class: armerror.Terminal, Reason: "unreachable", Err: errors.New("no answer")}
			}
			return nil
		}
		w.listens(t, false)
		if second := map[lb.SKU]int{lb.Basic: 1}[sku]; w.again != second || len(w.writes()) > 0 || away || len(w.calls) > 12 {
			t.Fatalf("%s: the lead was given up %d times, after %q", sku, w.again, w.calls)
		}
		w.listens(t, false)
		if done := w.kept.Done; done != (sku == lb.Basic) || w.ip.Address != first {
			t.Errorf("%s: after %q", sku, w.calls)
		}
	}
}

// Removing the request is retried; otherwise each leader would give up its lead.
func TestAnAnswerThatIsNotWritten(t *testing.T) {
	w, fails := newWorld(), 3
	w.hears, w.manual, w.asked.Run = true, true, wish("")
	w.fails = func(call string) error {
		if call == "keep that it was heard" && fails > 0 {
			fails--
			return errors.New("the API server is away")
		}
		return nil
	}
	w.listens(t, false)
	if w.again > 0 || w.asked.Run != nil || !w.kept.Done {
		t.Errorf("the lead was given up %d times, after %q", w.again, w.calls)
	}
}

// Without an explicit SKU, requests are ignored.
func TestForbiddenMigration(t *testing.T) {
	w := newWorld()
	w.manual, w.hears, w.asked.Run = true, false, wish("")
	w.listens(t, true)
	if w.again > 0 || w.ip.SKU != lb.Basic || w.kept.IsOpen() {
		t.Errorf("the lead was given up %d times, after %q", w.again, w.calls)
	}
}
