// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// ending is the result of a load balancer write.
type ending string

var endings = []ending{"settled", "refused", "lost", "lost, and lands later", "lost, though it landed"}

// scene is a random schedule: pools, changes and events with their times.
type scene struct {
	pools   map[lb.PoolID]string
	members []string
	steps   []step
}

type step struct {
	wait   time.Duration
	change lb.PoolID // zero for none
	to     int
	fails  bool // the next pool write fails
	goes   bool // the pool is deleted
	ends   ending
}

var cast = []lb.PoolID{web, api, poolID("kubernetes", "db")}

func drawScene(t *rapid.T, endings ...ending) scene {
	s := scene{pools: map[lb.PoolID]string{}, members: []string{"", "n1=10.0.0.1", "n2=10.0.0.2", "n1=10.0.0.1 n3=10.0.0.3", "n2=10.0.0.2 n3=10.0.0.3"}}
	for _, id := range cast {
		s.pools[id] = rapid.SampledFrom([]string{"", "vm=10.9.9.9", "n1=10.0.0.1", "n3=10.0.0.3 vm=10.9.9.9"}).Draw(t, id.Name)
	}
	s.steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		st := step{wait: time.Duration(rapid.IntRange(0, 20000).Draw(t, "ms")) * time.Millisecond}
		if len(endings) > 0 && rapid.Bool().Draw(t, "whole") {
			st.ends = rapid.SampledFrom(endings).Draw(t, "ends")
			return st
		}
		st.change, st.to = rapid.SampledFrom(cast).Draw(t, "pool"), rapid.IntRange(0, len(s.members)-1).Draw(t, "to")
		st.fails = rapid.IntRange(0, 3).Draw(t, "fails") == 0
		st.goes = len(endings) > 0 && rapid.IntRange(0, 4).Draw(t, "goes") == 0
		return st
	}), 1, 12).Draw(t, "steps")
	return s
}

// play performs the steps, and returns the lost writes that may still land.
func (s scene) play(w *world) (late []func()) {
	for id, holds := range s.pools {
		w.pool(id, holds)
		for _, a := range addresses("n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3") {
			w.nodes[a.IP] = true
		}
	}
	for _, st := range s.steps {
		w.wait(st.wait)
		if st.ends != "" {
			late = append(late, w.writeAs(st.ends))
			continue
		}
		if st.goes {
			w.set(func() { delete(w.pools, st.change.Key()) })
			s.pools[st.change] = "" // foreign members are lost for good
			continue
		}
		if st.fails {
			w.failing("PUT", 1, armerror.Failure{ResultUnknown: true})
		}
		w.change(st.change, s.members[st.to])
	}
	return late
}

// writeAs writes the load balancer. later is the write if it is still in flight.
func (w *world) writeAs(end ending) (later func()) {
	defer w.hold()()
	next, settle := w.lanes.StagePools(web.LoadBalancer, w.whole(cast...))
	switch end {
	case "settled":
		shown, _ := w.putWhole(next)
		settle(shown, true)
	case "lost, though it landed":
		w.putWhole(next)
		settle(nil, true)
	case "lost, and lands later":
		settle(nil, true)
		return func() { w.putWhole(next) }
	default:
		time.Sleep(w.writeTime)
		settle(nil, end == "lost")
	}
	return func() {}
}

// Whatever the result of load balancer writes, whenever a lost one lands, whatever Azure does with
// their addresses, and even if a pool is deleted: finally each pool holds the wanted
// and all foreign addresses, and the record the wanted ones. The record always covers what Weir has
// in a pool. If Azure keeps the etag of an unchanged pool, a check repairs what lands, and the
// record may hold more until the etag changes.
func TestLawHoweverItEndsNothingIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt, endings...)
		lands := time.Duration(rapid.IntRange(0, 120).Draw(rt, "lands after")) * time.Second
		keeps := rapid.Bool().Draw(rt, "an unchanged write keeps the etag")
		drift := map[bool]time.Duration{true: period}[keeps]
		arm := azure{rapid.Bool().Draw(rt, "ignores"), rapid.Bool().Draw(rt, "makes empty")}
		inWorldOf(t, Config{MaxRetries: 3, ResyncPeriod: drift}, func(w *world) {
			w.keeps, w.azure = keeps, arm
			late := s.play(w)
			w.wait(lands)
			unlock := w.hold() // Azure does one write at a time
			for _, land := range late {
				land()
			}
			unlock()
			w.writeAs("settled") // recreates missing pools
			w.wait(10 * time.Minute)
			if keeps {
				w.set(func() {
					for _, p := range w.pools { // another client writes the load balancer
						p.Etag = nextEtag(nextEtag(p.Etag))
					}
				})
				w.wait(period)
			}
			for _, id := range cast {
				s.expectInSync(rt, w, id)
			}
		})
	})
}

// expectLevel compares a pool with its last change.
func (s scene) expectInSync(t *rapid.T, w *world, id lb.PoolID) {
	wanted, changed := w.wanted[id.Name]
	if !changed {
		return
	}
	members := addresses(s.pools[id])
	foreign := slices.DeleteFunc(members, func(a lb.Address) bool { return a.Name != "vm" })
	want, got := sortedIPs(slices.Concat(foreign, wanted)), sortedIPs(w.pools[id.Key()].Addresses)
	if !slices.Equal(want, got) {
		t.Errorf("%s holds %v, want %v: %q", id.Name, got, want, w.calls)
	}
	started := slices.ContainsFunc(s.steps, func(st step) bool { return st.goes && st.change == id })
	if started { // a write may recreate it after the last check: the next one trims the record
		if !contains(w.ledger[id.Name], wanted, w.nodes) {
			t.Errorf("the ledger of %s holds %v, and lacks some of %v", id.Name, w.ledger[id.Name], wanted)
		}
		return
	}
	if ledger := sortedIPs(wanted); !slices.Equal(w.ledger[id.Name], ledger) {
		t.Errorf("the ledger of %s holds %v, want %v", id.Name, w.ledger[id.Name], ledger)
	}
}
