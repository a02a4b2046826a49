// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
)

func wish(why string) *migrate.Wish {
	return &migrate.Wish{At: time.Unix(1e9, 0).UTC(), By: "jane", Why: why}
}

// toAzure are the writes to Azure alone.
func (w *world) toAzure() []string {
	return slices.DeleteFunc(w.writes(), func(call string) bool { return strings.HasPrefix(call, "keep ") })
}

// Whenever somebody asks for a stop, nothing more is written to Azure once the requests under way have ended, by no
// process, and a journal that is open says that it was heard. Once the stop is taken back it comes to its end.
func TestAStopIsHeard(t *testing.T) {
	for at, call := range all[:len(all)-1] {
		w := newWorld()
		w.fails = func(is string) error {
			if is == call {
				w.asked.Stop = wish("not today")
			}
			return nil
		}
		for range 2 { // the second process finds the stop
			if w.run(t) {
				t.Fatalf("stopped at %q it has ended: %q", call, w.calls)
			}
		}
		// A round writes the journal, then one kind of thing: what it has begun comes to its end.
		want := slices.DeleteFunc(slices.Clone(all[:at+1]), func(c string) bool { return strings.HasPrefix(c, "keep ") })
		if strings.HasPrefix(call, "keep ") {
			want = append(want, all[at+1])
		}
		if got := w.toAzure(); !slices.Equal(got, want) && !(strings.HasPrefix(call, "keep ") && slices.Equal(got, want[:len(want)-1])) {
			t.Errorf("stopped at %q it has written %q, want %q", call, got, want)
		}
		if !w.kept.Heard.Equal(w.asked.Stop.At) || !strings.Contains(w.said.String(), `by=jane`) || !strings.Contains(w.said.String(), `why="not today" begun=true`) {
			t.Errorf("stopped at %q: heard %s\n%s", call, w.kept.Heard, w.said.String())
		}
		w.asked, w.fails = migrate.Asked{}, nil
		if !w.run(t) || !w.kept.Done || w.ip.Address != first || w.ip.SKU != lb.Standard {
			t.Errorf("stopped at %q, and taken back: %+v after %q", call, w.ip, w.calls)
		}
	}
}

// A stop that is there at the start has nothing be written, the journal neither, and little be read; the process that
// waits goes on when it is taken back.
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
		if len(w.calls) > 4 || len(w.writes()) > 0 {
			t.Errorf("it was stopped: %q", w.calls)
		}
		w.mu.Lock()
		w.asked = migrate.Asked{}
		w.mu.Unlock()
		<-done
	})
	if !w.kept.Done || w.ip.Address != first || !strings.Contains(w.said.String(), "goes on: the stop was taken back") {
		t.Errorf("%+v after %q\n%s", w.ip, w.calls, w.said.String())
	}
}

// A stop of what nobody has to do holds up nobody.
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
