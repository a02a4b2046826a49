// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// A small model of two replicas, the leader's lease, the ledger of one pool, and the pool.
// All that can happen in it is played, in every order, one tick of time apart. Each rule
// names the code that it stands for. A freeze is not a step of its own: between any two
// steps of a replica as much time may pass as the model has.

const (
	// The lease of the model lasts three ticks, of which its holder writes during one. So
	// what has left has one more to arrive, as it has between the renew deadline and the
	// lease duration.
	modelWindow = 1
	modelLease  = 3
	modelTicks  = 5
)

// rules are what is switched on.
type rules struct {
	fence bool // lead.Fence: a write asks it before it leaves
	union bool // kube.unite: who meets another's ledger keeps what that holds
	lease int8 // leases.Election.LeaseDuration
}

// set is a set of addresses, by bits: 1 is that of replica 0, 2 that of replica 1. Each wants
// its own alone, as it has seen the endpoints last.
type set uint8

// at is what a replica does next.
type at uint8

const (
	standing at = iota // it does not lead; next it tries for the lease
	idle               // it leads; next it loads the ledger, once, or begins an attempt
	looked             // it has read the pool
	recorded           // what it is about to write is on record
	sent               // its write has left
	reports            // its write was carried out
	ended              // it has seen that it does not lead
)

// replica is one process. Its fields are what it remembers.
type replica struct {
	Does    at
	Asked   int8 // when its last renewal was asked for
	Loaded  bool // it has read the ledger, which it does once: kube.statuses.load
	Ledger  set  // its own copy, authoritative to it
	Version bool // that it knows of the ledger still stands
	Seen    set  // the pool as the attempt has read it
	Etag    bool // that it has read still stands
	Writes  set  // what its write has the pool hold
}

// world is one state. It is comparable, so that each is visited once.
type world struct {
	Now     int8
	Holder  int8 // of the lease; -1 is nobody
	Renewed int8 // when it was, by the API server
	Ledger  set
	Pool    set
	R       [2]replica
}

func (w world) mayWrite(r int, on rules) bool {
	return !on.fence || covered(time.Duration(w.R[r].Asked), time.Duration(w.Now), modelWindow)
}

// step is a state that follows, and what happened.
type step struct {
	what string
	to   world
	// by is who made the step, and writes true if a request left with it.
	by     int
	writes bool
}

// next are all states that may follow.
func (w world) next(on rules) []step {
	var all []step
	if w.Now < modelTicks {
		to := w
		to.Now++
		all = append(all, step{what: "time passes", to: to})
	}
	for r := range w.R {
		all = append(all, w.elects(r, on)...)
		if w.R[r].Does != standing && w.R[r].Does != ended {
			for _, s := range w.works(r, on) {
				s.by = r
				all = append(all, s)
			}
		}
	}
	return all
}

// elects is client-go's elector with kube.leaderLock: a replica leads when the lease stood
// still for as long as it lasts, and renews it with the version that it wrote last, so that
// it fails once another has taken it.
func (w world) elects(r int, on rules) []step {
	to, is := w, &w.R[r]
	switch {
	case is.Does == standing && (w.Holder < 0 || w.Now-w.Renewed >= on.lease):
		to.Holder, to.Renewed = int8(r), w.Now //nolint:gosec // 0 or 1
		to.R[r].Does, to.R[r].Asked = idle, w.Now
		return []step{{what: fmt.Sprintf("%d leads", r), to: to}}
	case is.Does == standing || is.Does == ended:
		return nil
	case w.Holder == int8(r): //nolint:gosec // 0 or 1
		to.Renewed, to.R[r].Asked = w.Now, w.Now
		return []step{{what: fmt.Sprintf("%d renews", r), to: to}}
	}
	to.R[r] = replica{Does: ended}
	return []step{{what: fmt.Sprintf("%d finds the lease another's", r), to: to}}
}

// works is one step of poolupdate's attempt by a replica that takes itself for the leader.
func (w world) works(r int, on rules) []step {
	is, wants := w.R[r], set(1<<r)
	if is.Does == idle && !is.Loaded { // kube.statuses.load: a quorum read
		to := w
		to.R[r].Loaded, to.R[r].Ledger, to.R[r].Version = true, w.Ledger, true
		return []step{{what: fmt.Sprintf("%d loads the ledger: %b", r, w.Ledger), to: to}}
	}
	switch is.Does {
	case idle: // poolupdate.Azure.Get
		to := w
		if w.Pool == wants && is.Ledger == wants {
			return nil
		}
		to.R[r].Does, to.R[r].Seen, to.R[r].Etag = looked, w.Pool, true
		return []step{{what: fmt.Sprintf("%d reads the pool: %b", r, w.Pool), to: to}}
	case looked: // Config.prepare: what is not in the ledger is foreign, and stays
		if is.Ledger|wants == is.Ledger {
			to := w
			to.R[r].Does, to.R[r].Writes = recorded, is.Seen&^is.Ledger|wants
			return []step{{what: fmt.Sprintf("%d has recorded enough", r), to: to}}
		}
		return w.records(r, is.Ledger|wants, on, func(to *replica, learnt bool) {
			if to.Does, to.Writes = recorded, is.Seen&^is.Ledger|wants; learnt {
				to.Does = idle // kube.errAnotherRecorded
			}
		})
	case recorded: // azure.fenced, right before the request leaves
		if !w.mayWrite(r, on) {
			return w.refused(r)
		}
		to := w
		to.R[r].Does = sent
		return []step{{what: fmt.Sprintf("%d sends its write of %b", r, is.Writes), to: to, writes: true}}
	case sent: // Azure: If-Match
		to := w
		if !is.Etag {
			to.R[r].Does = idle
			return []step{{what: fmt.Sprintf("the write of %d meets a newer pool", r), to: to}}
		}
		to.Pool, to.R[r].Does, to.R[1-r].Etag = is.Writes, reports, false
		return []step{{what: fmt.Sprintf("the pool is written by %d: %b", r, is.Writes), to: to}}
	case reports: // kube.note: the ledger is trimmed to what is wanted
		return w.records(r, wants, on, func(to *replica, _ bool) { to.Does = idle })
	}
	return nil
}

// records writes the ledger: kube.statuses.apply over kube.fenced. The version of the object
// is read again where it has moved on.
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

// refused is the end of a process: app.leading.
func (w world) refused(r int) []step {
	to := w
	to.R[r] = replica{Does: ended}
	return []step{{what: fmt.Sprintf("%d is refused, and ends", r), to: to}}
}

// judge says what is wrong with a step from one state to the next.
func judge(from world, s step) string {
	if other := from.R[1-s.by]; s.writes && other.Loaded && from.Holder != int8(s.by) { //nolint:gosec // 0 or 1
		return fmt.Sprintf("%d writes, and the lead is another's, who has loaded the ledger", s.by)
	}
	return ""
}

// orphan says which address is nobody's: it is in the pool, and neither in the ledger, nor
// in what anybody still works on. The one who leads takes it for somebody else's for good.
func (w world) orphan() string {
	all := w.Ledger
	for _, r := range w.R {
		if r.Does == ended || r.Does == standing {
			continue
		}
		if all |= r.Ledger; r.Does == reports || r.Does == sent {
			return "" // not at rest
		}
	}
	if left := w.Pool &^ all; left != 0 {
		return fmt.Sprintf("the pool holds %b, of which nobody knows %b", w.Pool, left)
	}
	return ""
}

// explore visits all states, and returns how many there are and the shortest way to each
// kind of fault.
func explore(on rules) (states int, faults map[string][]string) {
	type edge struct {
		from world
		what string
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
			for kind, why := range map[string]string{"two writers": judge(w, s), "orphan": s.to.orphan()} {
				if why == "" || faults[kind] != nil {
					continue
				}
				way := []string{s.what, why}
				for at := w; at != begin; at = came[at].from {
					way = append([]string{came[at].what}, way...)
				}
				faults[kind] = way
			}
		}
	}
	return len(came), faults
}

// Without the fence the model finds what was found in practice; with it, nothing. The union
// of the ledgers alone does not do, since a write of what is on record already meets no
// other ledger. Nor does a fence that lets writes leave until others may lead: it takes a
// lease that is longer than that.
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
