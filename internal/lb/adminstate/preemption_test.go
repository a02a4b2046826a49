// SPDX-License-Identifier: Apache-2.0

package adminstate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb/adminstate"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// once is an event that occurred once, at this second.
func once(uid string, s float64) adminstate.Event {
	return adminstate.Event{UID: uid, Created: at(s), First: at(s), Last: at(s), Count: 1}
}

// again is an event that occurred twice.
func again(uid string, first, last float64) adminstate.Event {
	return adminstate.Event{UID: uid, Created: at(first), First: at(first), Last: at(last), Count: 2}
}

func record(uid string, s float64, count int) adminstate.Record {
	return adminstate.Record{UID: uid, At: at(s), Count: count}
}

func TestWhatAnEventDoes(t *testing.T) {
	const ignore, note, put = adminstate.ActionIgnore, adminstate.ActionRecord, adminstate.ActionTaint
	slow := once("a", 10) // the emitter's clock is an hour behind
	slow.First, slow.Last = slow.First.Add(-time.Hour), slow.Last.Add(-time.Hour)
	slowAgain := slow
	slowAgain.Count, slowAgain.Last = 2, slow.Last.Add(time.Minute)
	fast := once("a", 10)
	fast.First, fast.Last = fast.First.Add(time.Hour), fast.Last.Add(time.Hour)
	lasting := func(s float64) adminstate.Event { return adminstate.Event{UID: "c", Created: at(s), Transition: true} }
	uncounted := again("a", 10, 70)
	uncounted.Count = 0
	const isHeard = true
	for _, tt := range []struct {
		name   string
		node   adminstate.Node
		event  adminstate.Event
		want   adminstate.Action
		record adminstate.Record // unless it is ignored
		heard  bool
	}{
		{"the first of a node", adminstate.Node{}, once("a", 10), put, record("a", 10, 1), !isHeard},
		{"the first, while the taint is there by hand", adminstate.Node{HasTaint: true}, once("a", 10), note, record("a", 10, 1), !isHeard},
		{"the same after a restart", adminstate.Node{HasTaint: true, Record: record("a", 10, 1)}, once("a", 10), ignore, adminstate.Record{}, !isHeard},
		{"the same after the taint was cleared", adminstate.Node{Record: record("a", 10, 1)}, once("a", 10), ignore, adminstate.Record{}, !isHeard},
		{"an earlier one", adminstate.Node{Record: record("b", 20, 1)}, once("a", 10), ignore, adminstate.Record{}, !isHeard},
		{"another in the same second", adminstate.Node{Record: record("b", 10, 1)}, once("a", 10.9), ignore, adminstate.Record{}, !isHeard},
		{"the first, found as the process began", adminstate.Node{}, once("a", 10), put, record("a", 10, 1), isHeard},
		{"the first, found so under a taint by hand", adminstate.Node{HasTaint: true}, once("a", 10), note, record("a", 10, 1), isHeard},
		{"a later one while the taint stands", adminstate.Node{HasTaint: true, Record: record("b", 9, 1)}, once("a", 10), ignore, adminstate.Record{}, !isHeard},
		{"the same, found as the process began", adminstate.Node{HasTaint: true, Record: record("b", 9, 1)}, once("a", 10), ignore, adminstate.Record{}, isHeard},
		{"one heard before it was cleared", adminstate.Node{Record: record("b", 9, 1)}, once("a", 10), ignore, adminstate.Record{}, isHeard},
		{"a later one after it was cleared", adminstate.Node{Record: record("b", 9, 1)}, once("a", 10), put, record("a", 10, 1), !isHeard},
		{"said again while the taint stands", adminstate.Node{HasTaint: true, Record: record("a", 10, 1)}, again("a", 10, 70), ignore, adminstate.Record{}, !isHeard},
		{"said again after it was cleared", adminstate.Node{Record: record("a", 10, 1)}, again("a", 10, 70), put, record("a", 70, 2), !isHeard},
		{"said again without a count", adminstate.Node{Record: record("a", 10, 0)}, uncounted, put, record("a", 70, 0), !isHeard},
		{"said again in the same second", adminstate.Node{Record: record("a", 10, 1)}, again("a", 10, 10), put, record("a", 10, 2), !isHeard},
		{"said again by a clock that was put back", adminstate.Node{Record: record("a", 70, 2)}, func() adminstate.Event {
			e := again("a", 10, 60)
			e.Count = 3
			return e
		}(), put, record("a", 70, 3), !isHeard},

		{"before the node was there", adminstate.Node{Created: at(11)}, once("a", 10), ignore, adminstate.Record{}, !isHeard},
		{"in the second in which it came", adminstate.Node{Created: at(10)}, once("a", 10), put, record("a", 10, 1), !isHeard},
		{"said again for the node that came after", adminstate.Node{Created: at(60)}, again("a", 10, 70), put, record("a", 70, 2), !isHeard},
		{"said again before it came", adminstate.Node{Created: at(71)}, again("a", 10, 70), ignore, adminstate.Record{}, !isHeard},

		{"an emitter whose clock is behind", adminstate.Node{Created: at(5)}, slow, put, record("a", 10, 1), !isHeard},
		{"it says so again", adminstate.Node{Created: at(5), Record: record("a", 10, 1)}, slowAgain, put, record("a", 10, 2), !isHeard},
		{"and after another's", adminstate.Node{Record: record("b", 12, 1)}, slowAgain, ignore, adminstate.Record{}, !isHeard},
		{"an emitter whose clock is ahead, of the node before", adminstate.Node{Created: at(60)}, fast, ignore, adminstate.Record{}, !isHeard},
		{"a condition", adminstate.Node{}, lasting(10), put, record("c", 10, 0), !isHeard},
		{"the same condition", adminstate.Node{HasTaint: true, Record: record("c", 10, 0)}, lasting(10), ignore, adminstate.Record{}, !isHeard},
		{"the same condition after the taint was cleared", adminstate.Node{Record: record("c", 10, 0)}, lasting(10), ignore, adminstate.Record{}, !isHeard},
		{"a condition that became true again", adminstate.Node{Record: record("c", 10, 0)}, lasting(70), put, record("c", 70, 0), !isHeard},
		{"it did while the taint stands: it is recorded, for it is not repeated", adminstate.Node{HasTaint: true, Record: record("c", 10, 0)}, lasting(70), note, record("c", 70, 0), !isHeard},
		{"a condition after an event", adminstate.Node{HasTaint: true, Record: record("a", 10, 1)}, lasting(9), ignore, adminstate.Record{}, !isHeard},
		{"an event after a condition", adminstate.Node{HasTaint: true, Record: record("c", 10, 0)}, once("a", 11), ignore, adminstate.Record{}, !isHeard},
		{"an event without times", adminstate.Node{Created: at(5)}, adminstate.Event{UID: "a", Created: at(10)}, put, record("a", 10, 0), !isHeard},
	} {
		verdict, kept := adminstate.HandleEviction(tt.node, tt.event, tt.heard)
		want := tt.record
		if tt.want == ignore {
			want = tt.node.Record
		}
		if verdict != tt.want || kept != want {
			t.Errorf("%s: %d, keeps %v; want %d and %v", tt.name, verdict, kept, tt.want, want)
		}
	}
}

// The record is stored as text; other text is an empty record.
func TestTheRecordIsText(t *testing.T) {
	r := record("6f2b", 10, 3)
	const text = `{"event":"6f2b","at":"2026-01-02T03:04:15Z","count":3}`
	if got := r.String(); got != text {
		t.Errorf("kept as %s", got)
	}
	if got := adminstate.ParseRecord(text); got != r {
		t.Errorf("read as %v", got)
	}
	for _, text := range []string{"", "yes", `{"event":1}`, `{"event":"6f2b","at":"yesterday"}`} {
		if got := adminstate.ParseRecord(text); got != (adminstate.Record{}) {
			t.Errorf("%s: read as %v", text, got)
		}
	}
}

// world is a node, the events for its name, and their handler.
type world struct {
	*rapid.T
	now    float64
	skew   float64 // how far the emitter's clock is ahead
	events []adminstate.Event
	node   adminstate.Node
	heard  adminstate.SeenEvents
	writes int // since the taint was last set or removed
}

// judges handles an event as the controller does.
func (w *world) judges(e adminstate.Event) adminstate.Action {
	verdict, kept := adminstate.HandleEviction(w.node, e, w.heard.HasEvent(e))
	if kept.At.Before(w.node.Record.At) {
		w.Fatalf("the record went back from %v to %v", w.node.Record, kept)
	}
	if w.node.HasTaint {
		w.heard.AddEvent(e)
	}
	if verdict != adminstate.ActionIgnore {
		w.writes++
	}
	if w.node.HasTaint && w.writes > 1 {
		w.Fatalf("%d writes while the taint stood", w.writes)
	}
	w.node.Record = adminstate.ParseRecord(kept.String())
	w.node.HasTaint = w.node.HasTaint || verdict == adminstate.ActionTaint
	return verdict
}

// says adds a new occurrence. It takes effect unless the taint is set, with correct clocks or for
// the last recorded event.
func (w *world) says(e adminstate.Event, recorded bool) {
	want := adminstate.ActionTaint
	switch {
	case w.node.HasTaint && w.node.Record == adminstate.Record{}:
		want = adminstate.ActionRecord
	case w.node.HasTaint:
		want = adminstate.ActionIgnore
	}
	if got := w.judges(e); got != want && (w.skew == 0 || recorded) {
		w.Fatalf("%+v is judged %d, want %d; the record is %v", e, got, want, w.node.Record)
	}
}

// restarts handles all events in random order in a new process.
func (w *world) restarts() {
	w.heard = adminstate.SeenEvents{}
	for _, e := range w.events {
		w.heard.AddEvent(e)
	}
	for _, e := range rapid.Permutation(w.events).Draw(w.T, "order") {
		before := w.node
		if before.Record == (adminstate.Record{}) {
			continue // a node without a record
		}
		if got := w.judges(e); got != adminstate.ActionIgnore || w.node != before {
			w.Fatalf("%+v is judged %d again: %+v", e, got, w.node)
		}
	}
}

func (w *world) emitter() time.Time { return at(w.now + w.skew) }

// An occurrence never takes effect twice: not after a restart, not after an operator removed the
// taint, not for a recreated node. While the taint is set, the node is written at most once.
func TestNoOccurrenceActsTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t, skew: float64(rapid.SampledFrom([]int{0, 0, -40, 40}).Draw(t, "skew")), node: adminstate.Node{Created: start}, heard: adminstate.SeenEvents{}}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.now += float64(rapid.IntRange(1000, 20_000).Draw(t, "ms")) / 1000
			switch step := rapid.SampledFrom([]string{"event", "repeat", "repeat", "taint", "clear", "restart", "node"}).Draw(t, "step"); {
			case step == "event":
				e := once(fmt.Sprint(len(w.events)), w.now)
				e.First, e.Last = w.emitter(), w.emitter()
				w.events = append(w.events, e)
				w.says(e, false)
			case step == "repeat" && len(w.events) > 0:
				e := &w.events[rapid.IntRange(0, len(w.events)-1).Draw(t, "which")]
				recorded := e.UID == w.node.Record.UID
				e.Count, e.Last = e.Count+1, w.emitter()
				w.says(*e, recorded)
			case step == "taint":
				w.node.HasTaint, w.writes = true, 0
			case step == "clear":
				w.node.HasTaint, w.writes = false, 0
			case step == "restart":
				w.restarts()
			case step == "node":
				w.node, w.writes = adminstate.Node{Created: at(w.now)}, 0
				if w.skew <= 0 { // an emitter ahead of time may refer to the next node
					for _, e := range slices.Clone(w.events) {
						if got := w.judges(e); got != adminstate.ActionIgnore {
							w.Fatalf("%+v of the node before is judged %d", e, got)
						}
					}
				}
			}
		}
		w.restarts()
	})
}
