// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// A small model of two replicas, the leader election lease, the status record of one pool, and the
// pool. All interleavings are explored, one tick apart. Each rule names the code it models. A
// suspension is not a separate step: any time may pass between two steps of a replica.

const (
	// The lease lasts three ticks, and its holder writes during one. So a sent request has one more
	// tick to arrive, as between renew deadline and lease duration.
	modelWindow = 1
	modelLease  = 3
	modelTicks  = 5
)

// rules are the mechanisms under test.
type rules struct {
	fence bool // leader.Fence: checked before each write
	union bool // Entry.mergeOtherRecord of package backendpool: a replica merges another one's record
	lease int8 // k8s.Election.LeaseDuration
}

// set is a bit set of addresses: 1 belongs to replica 0, 2 to replica 1. Each wants only its own,
// from the endpoints it has seen.
type set uint8

// at is what a replica does next.
type at uint8

const (
	standing at = iota // not leading; next it tries to acquire the lease
	idle               // leading; next it loads the record, once, or starts an attempt
	looked             // has read the pool
	recorded           // has recorded what it is about to write
	sent               // has sent its write
	reports            // its write has taken effect
	ended              // has noticed that it is not leading
)

// replica is the memory of one process.
type replica struct {
	Does    at
	Asked   int8 // when its last renewal was requested
	Loaded  bool // has read the record, once: backendpool's Statuses.LoadEntry
	Ledger  set  // its own authoritative copy
	Version bool // its version of the record is current
	Seen    set  // the pool as read by the attempt
	Etag    bool // its etag is current
	Writes  set  // the pool that its write sets
}

// world is one state. It is comparable, so that each is visited once.
type world struct {
	Now     int8
	Holder  int8 // of the lease; -1 if free
	Renewed int8 // last renewal, by the API server
	Ledger  set
	Pool    set
	R       [2]replica
}

func (w world) mayWrite(r int, on rules) bool {
	return !on.fence || isCovered(time.Duration(w.R[r].Asked), time.Duration(w.Now), modelWindow)
}

// step is a transition.
type step struct {
	what string
	to   world
	// by is the acting replica; writes is true if it sent a request.
	by     int
	writes bool
}

// next returns all transitions.
func (w world) next(on rules) []step {
	var steps []step
	if w.Now < modelTicks {
		to := w
		to.Now++
		steps = append(steps, step{what: "time passes", to: to})
	}
	for r := range w.R {
		steps = append(steps, w.elects(r, on)...)
		if w.R[r].Does != standing && w.R[r].Does != ended {
			for _, s := range w.works(r, on) {
				s.by = r
				steps = append(steps, s)
			}
		}
	}
	return steps
}

// elects models client-go's elector with leaderLock of package leases: a replica acquires a lease that was not
// renewed for its duration, and renews it with the last written version, so that a renewal fails
// after another replica acquired it.
func (w world) elects(r int, on rules) []step {
	to, got := w, &w.R[r]
	switch {
	case got.Does == standing && (w.Holder < 0 || w.Now-w.Renewed >= on.lease):
		to.Holder, to.Renewed = int8(r), w.Now //nolint:gosec // 0 or 1
		to.R[r].Does, to.R[r].Asked = idle, w.Now
		return []step{{what: fmt.Sprintf("%d leads", r), to: to}}
	case got.Does == standing || got.Does == ended:
		return nil
	case w.Holder == int8(r): //nolint:gosec // 0 or 1
		to.Renewed, to.R[r].Asked = w.Now, w.Now
		return []step{{what: fmt.Sprintf("%d renews", r), to: to}}
	}
	to.R[r] = replica{Does: ended}
	return []step{{what: fmt.Sprintf("%d finds the lease another's", r), to: to}}
}

// works is one step of an attempt of package updater by a replica that believes it leads.
func (w world) works(r int, on rules) []step {
	got, wants := w.R[r], set(1<<r)
	if got.Does == idle && !got.Loaded { // Statuses.LoadEntry: a quorum read
		to := w
		to.R[r].Loaded, to.R[r].Ledger, to.R[r].Version = true, w.Ledger, true
		return []step{{what: fmt.Sprintf("%d loads the ledger: %b", r, w.Ledger), to: to}}
	}
	switch got.Does {
	case idle: // updater.Azure.Get
		to := w
		if w.Pool == wants && got.Ledger == wants {
			return nil
		}
		to.R[r].Does, to.R[r].Seen, to.R[r].Etag = looked, w.Pool, true
		return []step{{what: fmt.Sprintf("%d reads the pool: %b", r, w.Pool), to: to}}
	case looked: // Config.prepare: unrecorded members are foreign and stay
		if got.Ledger|wants == got.Ledger {
			to := w
			to.R[r].Does, to.R[r].Writes = recorded, got.Seen&^got.Ledger|wants
			return []step{{what: fmt.Sprintf("%d has recorded enough", r), to: to}}
		}
		return w.records(r, got.Ledger|wants, on, func(to *replica, learnt bool) {
			if to.Does, to.Writes = recorded, got.Seen&^got.Ledger|wants; learnt {
				to.Does = idle // metadata.ErrConflict
			}
		})
	case recorded: // azure.fenced, right before the request is sent
		if !w.mayWrite(r, on) {
			return w.refused(r)
		}
		to := w
		to.R[r].Does = sent
		return []step{{what: fmt.Sprintf("%d sends its write of %b", r, got.Writes), to: to, writes: true}}
	case sent: // Azure: If-Match
		to := w
		if !got.Etag {
			to.R[r].Does = idle
			return []step{{what: fmt.Sprintf("the write of %d meets a newer pool", r), to: to}}
		}
		to.Pool, to.R[r].Does, to.R[1-r].Etag = got.Writes, reports, false
		return []step{{what: fmt.Sprintf("the pool is written by %d: %b", r, got.Writes), to: to}}
	case reports: // Controller.Report: trims the record to what is wanted
		return w.records(r, wants, on, func(to *replica, _ bool) { to.Does = idle })
	}
	return nil
}

// records writes the record: Statuses.ApplyStatus over a fenced client. After a conflict the version is
// read again.
func (w world) records(r int, holds set, on rules, done func(to *replica, learnt bool)) []step {
	if !w.mayWrite(r, on) {
		return w.refused(r)
	}
	to, learnt := w, false
	if on.union && !w.R[r].Version {
		holds |= w.Ledger
		learnt = true
	}
	to.Ledger, to.R[r].Ledger = holds, holds
	to.R[r].Version, to.R[1-r].Version = true, false
	done(&to.R[r], learnt)
	return []step{{what: fmt.Sprintf("%d records %b", r, holds), to: to, writes: true}}
}

// refused ends the process: app.leading.
func (w world) refused(r int) []step {
	to := w
	to.R[r] = replica{Does: ended}
	return []step{{what: fmt.Sprintf("%d is refused, and ends", r), to: to}}
}

// judge returns what is wrong with a transition, or "".
func judge(from world, s step) string {
	if other := from.R[1-s.by]; s.writes && other.Loaded && from.Holder != int8(s.by) { //nolint:gosec // 0 or 1
		return fmt.Sprintf("%d writes, and the lead is another's, who has loaded the ledger", s.by)
	}
	return ""
}

// orphan returns an address in the pool that is in no record and in no running attempt. The leader
// would treat it as foreign forever.
func (w world) orphan() string {
	all := w.Ledger
	for _, r := range w.R {
		if r.Does == ended || r.Does == standing {
			continue
		}
		if all |= r.Ledger; r.Does == reports || r.Does == sent {
			return "" // not idle
		}
	}
	if remaining := w.Pool &^ all; remaining != 0 {
		return fmt.Sprintf("the pool has %b, of which %b are unknown", w.Pool, remaining)
	}
	return ""
}

// explore visits all states. It returns their number and the shortest path to each kind of fault.
func explore(on rules) (states int, faults map[string][]string) {
	type edge struct {
		from  world
		about string
	}
	begin := world{Holder: -1}
	came, queue := map[world]edge{begin: {}}, []world{begin}
	faults = map[string][]string{}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		for _, s := range w.next(on) {
			if _, seen := came[s.to]; !seen {
				came[s.to] = edge{w, s.what}
				queue = append(queue, s.to)
			}
			for kind, reason := range map[string]string{"two writers": judge(w, s), "orphan": s.to.orphan()} {
				if reason == "" || faults[kind] != nil {
					continue
				}
				way := []string{s.what, reason}
				for at := w; at != begin; at = came[at].from {
					way = append([]string{came[at].about}, way...)
				}
				faults[kind] = way
			}
		}
	}
	return len(came), faults
}

// Without the fence the model finds the fault seen in practice; with it, none. Merging records is
// not enough, because a write of what is already recorded meets no other record. Nor is a fence
// that allows writes until others may lead: it would need a longer lease.
func TestTheModelOfLeaderLedgerAndPool(t *testing.T) {
	for _, tt := range []struct {
		on   rules
		want []string
	}{
		{rules{lease: modelLease}, []string{"orphan", "two writers"}},
		{rules{union: true, lease: modelLease}, []string{"orphan", "two writers"}},
		{rules{fence: true, union: true, lease: modelWindow}, []string{"orphan", "two writers"}},
		{rules{fence: true, lease: modelLease}, nil},
		{rules{fence: true, union: true, lease: modelLease}, nil},
	} {
		states, faults := explore(tt.on)
		t.Logf("%+v: %d states", tt.on, states)
		if got := slices.Sorted(maps.Keys(faults)); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: found %v, want %v", tt.on, got, tt.want)
		}
		for kind, way := range faults {
			t.Logf("%s:\n  %s", kind, strings.Join(way, "\n  "))
		}
	}
}
