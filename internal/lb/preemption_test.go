// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// once is an event that occurred once, at this second.
func once(uid string, s float64) lb.TaintEvent {
	return lb.TaintEvent{UID: uid, Created: at(s), First: at(s), Last: at(s), Count: 1}
}

// again is an event that occurred twice.
func again(uid string, first, last float64) lb.TaintEvent {
	return lb.TaintEvent{UID: uid, Created: at(first), First: at(first), Last: at(last), Count: 2}
}

func record(uid string, s float64, count int) lb.EvictionRecord {
	return lb.EvictionRecord{UID: uid, At: at(s), Count: count}
}

func TestEffectsOfEvents(t *testing.T) {
	const ignore, note, put = lb.EvictionIgnored, lb.EvictionRecorded, lb.EvictionTaints
	slow := once("a", 10) // the emitter's clock is an hour behind
	slow.First, slow.Last = slow.First.Add(-time.Hour), slow.Last.Add(-time.Hour)
	slowAgain := slow
	slowAgain.Count, slowAgain.Last = 2, slow.Last.Add(time.Minute)
	fast := once("a", 10)
	fast.First, fast.Last = fast.First.Add(time.Hour), fast.Last.Add(time.Hour)
	lasting := func(s float64) lb.TaintEvent { return lb.TaintEvent{UID: "c", Created: at(s), Transition: true} }
	uncounted := again("a", 10, 70)
	uncounted.Count = 0
	const isInitial = true
	for _, tt := range []struct {
		name    string
		node    lb.TaintedNode
		event   lb.TaintEvent
		want    lb.EvictionAction
		record  lb.EvictionRecord // unless it is ignored
		initial bool
	}{
		{"the first of a node", lb.TaintedNode{}, once("a", 10), put, record("a", 10, 1), !isInitial},
		{"the first, of a node tainted by hand", lb.TaintedNode{HasTaint: true}, once("a", 10), note, record("a", 10, 1), !isInitial},
		{"the same after a restart", lb.TaintedNode{HasTaint: true, Record: record("a", 10, 1)}, once("a", 10), ignore, lb.EvictionRecord{}, !isInitial},
		{"the same after the taint was cleared", lb.TaintedNode{Record: record("a", 10, 1)}, once("a", 10), ignore, lb.EvictionRecord{}, !isInitial},
		{"an earlier one", lb.TaintedNode{Record: record("b", 20, 1)}, once("a", 10), ignore, lb.EvictionRecord{}, !isInitial},
		{"another in the same second", lb.TaintedNode{Record: record("b", 10, 1)}, once("a", 10.9), ignore, lb.EvictionRecord{}, !isInitial},
		{"the first, found as the process began", lb.TaintedNode{}, once("a", 10), put, record("a", 10, 1), isInitial},
		{"the same, of a node tainted by hand", lb.TaintedNode{HasTaint: true}, once("a", 10), note, record("a", 10, 1), isInitial},
		{"a later one while the node is tainted", lb.TaintedNode{HasTaint: true, Record: record("b", 9, 1)}, once("a", 10), ignore, lb.EvictionRecord{}, !isInitial},
		{"the same, found as the process began", lb.TaintedNode{HasTaint: true, Record: record("b", 9, 1)}, once("a", 10), ignore, lb.EvictionRecord{}, isInitial},
		{"one recorded before it was cleared", lb.TaintedNode{Record: record("b", 9, 1)}, once("a", 10), ignore, lb.EvictionRecord{}, isInitial},
		{"a later one after it was cleared", lb.TaintedNode{Record: record("b", 9, 1)}, once("a", 10), put, record("a", 10, 1), !isInitial},
		{"repeated while the node is tainted", lb.TaintedNode{HasTaint: true, Record: record("a", 10, 1)}, again("a", 10, 70), ignore, lb.EvictionRecord{}, !isInitial},
		{"repeated after it was cleared", lb.TaintedNode{Record: record("a", 10, 1)}, again("a", 10, 70), put, record("a", 70, 2), !isInitial},
		{"repeated without a count", lb.TaintedNode{Record: record("a", 10, 0)}, uncounted, put, record("a", 70, 0), !isInitial},
		{"repeated in the same second", lb.TaintedNode{Record: record("a", 10, 1)}, again("a", 10, 10), put, record("a", 10, 2), !isInitial},
		{"repeated by a clock that was set back", lb.TaintedNode{Record: record("a", 70, 2)}, func() lb.TaintEvent {
			e := again("a", 10, 60)
			e.Count = 3
			return e
		}(), put, record("a", 70, 3), !isInitial},

		{"before the node was created", lb.TaintedNode{Created: at(11)}, once("a", 10), ignore, lb.EvictionRecord{}, !isInitial},
		{"in the second of its creation", lb.TaintedNode{Created: at(10)}, once("a", 10), put, record("a", 10, 1), !isInitial},
		{"repeated for a node created since", lb.TaintedNode{Created: at(60)}, again("a", 10, 70), put, record("a", 70, 2), !isInitial},
		{"repeated before its creation", lb.TaintedNode{Created: at(71)}, again("a", 10, 70), ignore, lb.EvictionRecord{}, !isInitial},

		{"an emitter whose clock is behind", lb.TaintedNode{Created: at(5)}, slow, put, record("a", 10, 1), !isInitial},
		{"its repetition", lb.TaintedNode{Created: at(5), Record: record("a", 10, 1)}, slowAgain, put, record("a", 10, 2), !isInitial},
		{"its repetition after another event", lb.TaintedNode{Record: record("b", 12, 1)}, slowAgain, ignore, lb.EvictionRecord{}, !isInitial},
		{"an emitter whose clock is ahead, of the node before", lb.TaintedNode{Created: at(60)}, fast, ignore, lb.EvictionRecord{}, !isInitial},
		{"a condition", lb.TaintedNode{}, lasting(10), put, record("c", 10, 0), !isInitial},
		{"the same condition", lb.TaintedNode{HasTaint: true, Record: record("c", 10, 0)}, lasting(10), ignore, lb.EvictionRecord{}, !isInitial},
		{"the same condition after the taint was cleared", lb.TaintedNode{Record: record("c", 10, 0)}, lasting(10), ignore, lb.EvictionRecord{}, !isInitial},
		{"a condition that became true again", lb.TaintedNode{Record: record("c", 10, 0)}, lasting(70), put, record("c", 70, 0), !isInitial},
		{"the same while the node is tainted: it is recorded, as a condition is not repeated", lb.TaintedNode{HasTaint: true, Record: record("c", 10, 0)}, lasting(70), note, record("c", 70, 0), !isInitial},
		{"a condition after an event", lb.TaintedNode{HasTaint: true, Record: record("a", 10, 1)}, lasting(9), ignore, lb.EvictionRecord{}, !isInitial},
		{"an event after a condition", lb.TaintedNode{HasTaint: true, Record: record("c", 10, 0)}, once("a", 11), ignore, lb.EvictionRecord{}, !isInitial},
		{"an event without times", lb.TaintedNode{Created: at(5)}, lb.TaintEvent{UID: "a", Created: at(10)}, put, record("a", 10, 0), !isInitial},
	} {
		verdict, kept := lb.HandleEviction(tt.node, tt.event, tt.initial)
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
	if got := lb.ParseEvictionRecord(text); got != r {
		t.Errorf("read as %v", got)
	}
	for _, text := range []string{"", "yes", `{"event":1}`, `{"event":"6f2b","at":"yesterday"}`} {
		if got := lb.ParseEvictionRecord(text); got != (lb.EvictionRecord{}) {
			t.Errorf("%s: read as %v", text, got)
		}
	}
}

// world is a node, the events for its name, and their handler.
type world struct {
	*rapid.T
	now    float64
	skew   float64 // how far the emitter's clock is ahead
	events []lb.TaintEvent
	node   lb.TaintedNode
	heard  lb.SeenEvents
	writes int // since the taint was last set or removed
}

// judges handles an event as the controller does.
func (w *world) judges(e lb.TaintEvent) lb.EvictionAction {
	verdict, kept := lb.HandleEviction(w.node, e, w.heard.HasEvent(e))
	if kept.At.Before(w.node.Record.At) {
		w.Fatalf("the record went back from %v to %v", w.node.Record, kept)
	}
	if w.node.HasTaint {
		w.heard.AddEvent(e)
	}
	if verdict != lb.EvictionIgnored {
		w.writes++
	}
	if w.node.HasTaint && w.writes > 1 {
		w.Fatalf("%d writes while the taint stood", w.writes)
	}
	w.node.Record = lb.ParseEvictionRecord(kept.String())
	w.node.HasTaint = w.node.HasTaint || verdict == lb.EvictionTaints
	return verdict
}

// says adds a new occurrence. It takes effect unless the taint is set, with correct clocks or for
// the last recorded event.
func (w *world) says(e lb.TaintEvent, recorded bool) {
	want := lb.EvictionTaints
	switch {
	case w.node.HasTaint && w.node.Record == lb.EvictionRecord{}:
		want = lb.EvictionRecorded
	case w.node.HasTaint:
		want = lb.EvictionIgnored
	}
	if got := w.judges(e); got != want && (w.skew == 0 || recorded) {
		w.Fatalf("%+v is judged %d, want %d; the record is %v", e, got, want, w.node.Record)
	}
}

// restarts handles all events in random order in a new process.
func (w *world) restarts() {
	w.heard = lb.SeenEvents{}
	for _, e := range w.events {
		w.heard.AddEvent(e)
	}
	for _, e := range rapid.Permutation(w.events).Draw(w.T, "order") {
		before := w.node
		if before.Record == (lb.EvictionRecord{}) {
			continue // a node without a record
		}
		if got := w.judges(e); got != lb.EvictionIgnored || w.node != before {
			w.Fatalf("%+v is judged %d again: %+v", e, got, w.node)
		}
	}
}

func (w *world) emitter() time.Time { return at(w.now + w.skew) }

// An occurrence never takes effect twice: not after a restart, not after an operator removed the
// taint, not for a recreated node. While the taint is set, the node is written at most once.
func TestNoOccurrenceActsTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t, skew: float64(rapid.SampledFrom([]int{0, 0, -40, 40}).Draw(t, "skew")), node: lb.TaintedNode{Created: start}, heard: lb.SeenEvents{}}
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
				w.node, w.writes = lb.TaintedNode{Created: at(w.now)}, 0
				if w.skew <= 0 { // an emitter ahead of time may refer to the next node
					for _, e := range slices.Clone(w.events) {
						if got := w.judges(e); got != lb.EvictionIgnored {
							w.Fatalf("%+v of the node before is judged %d", e, got)
						}
					}
				}
			}
		}
		w.restarts()
	})
}
