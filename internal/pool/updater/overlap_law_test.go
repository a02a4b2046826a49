// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
)

// The state of a pool when others are due.
const (
	isDue    = "due"
	isQuiet  = "quiet"  // nothing pending
	isParked = "parked" // waits for Retry-After
	isNIC    = "nic"    // holds network interfaces
	drains   = "drains" // a node of it leaves
)

// faults are the errors that a write may meet once, at acceptance or, if OperationFailed, at its end.
var faults = map[string]*armerror.Failure{
	"nothing": nil, "412": {Status: 412}, "429": {Status: 429}, "409": {Status: 409}, "400": {Status: 400}, "503": {Status: 503},
	"lost":      {ResultUnknown: true},
	"failed":    {OperationFailed: true, Codes: []string{"Other"}},
	"overtaken": {OperationFailed: true, Codes: []string{"CanceledAndSupersededDueToAnotherOperation"}},
}

// meets makes the next write of a pool meet an error, and lets another client write pool number other once a
// write was accepted; -1 is none.
func (pd *piped) meets(about string, at lb.PoolID, other int, pools []lb.PoolID) (hasMet, hasWritten *bool) {
	hasMet, hasWritten = new(bool), new(bool)
	answer := faults[about]
	pd.set(func() {
		pd.begins = func(id lb.PoolID) error {
			if id != at || *hasMet || answer == nil {
				return nil
			}
			*hasMet = true
			f := armerror.Classify(*answer, errors.New("met"))
			if answer.OperationFailed {
				pd.failing[id.Name] = f
				return nil
			}
			return f
		}
		pd.accepted = func(lb.PoolID) {
			if other < 0 || *hasWritten {
				return
			}
			*hasWritten = true
			p := pd.pools[pools[other].Key()]
			p.Addresses = append(slices.Clone(p.Addresses), addresses("vm2=10.9.9.8")...)
			pd.retag()
		}
	})
	return hasMet, hasWritten
}

// However Azure answers a write while another runs, whatever is due, parked or holds interfaces, whatever error one
// write meets, and whichever pool another client writes in between: no foreign member is lost, pools that
// are not due stay unchanged, a membership change resets no admin state, and each change is settled
// and reported once. What Azure answers to overlap alone costs no retry, and at most one more write of each pool.
func TestLawOfOverlappingWrites(t *testing.T) {
	answers := []behavior.Result{"", behavior.SupersedeDiscard, behavior.SupersedeDiscardLate, behavior.Lock, behavior.Conflict}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(rt, "pools")
		names := make([]string, n)
		for i := range n {
			names[i] = rapid.SampledFrom([]string{isDue, isDue, isDue, drains, isQuiet, isParked, isNIC}).Draw(rt, fmt.Sprint("p", i+1))
		}
		meets, at := rapid.SampledFrom(slices.Sorted(maps.Keys(faults))).Draw(rt, "meets"), rapid.IntRange(0, n-1).Draw(rt, "at")
		other := rapid.IntRange(-1, n-1).Draw(rt, "another client writes")
		answer := rapid.SampledFrom(answers).Draw(rt, "answer")
		inPipedWorld(t, n, always, func(w *piped, pools []lb.PoolID) {
			w.drainAll(pools, "n1=10.0.0.1/Down")
			w.wait(time.Minute)
			for i, id := range pools {
				switch names[i] {
				case isParked:
					w.failingPool("PUT", id, 1, func() armerror.Failure {
						return armerror.Failure{Status: 429, RetryAt: time.Now().Add(time.Hour)}
					})
					w.change(id, "n1=10.0.0.1/Down n2=10.0.0.2")
					w.wait(time.Minute)
				case drains:
					w.change(id, "n1=10.0.0.1/Down n2=10.0.0.2")
					w.wait(time.Minute)
				case isNIC:
					w.set(func() { w.pools[id.Key()].NIC = true })
				}
			}
			w.set(func() { w.answer, w.reports = answer, nil })
			w.sent()
			hasMet, hasWritten := w.meets(meets, pools[at], other, pools)
			for i, id := range pools {
				switch names[i] {
				case isDue, isNIC:
					w.change(id, "n1=10.0.0.1/Down n2=10.0.0.2")
				case drains:
					w.drainAll([]lb.PoolID{id}, "n1=10.0.0.1/Down n2=10.0.0.2/Down")
				}
			}
			w.wait(10 * time.Minute)
			terminal := *hasMet && (meets == "400" || meets == "503")
			for i, id := range pools {
				want, words := "n1=10.0.0.1/Down ", ""
				switch names[i] {
				case isDue:
					if want, words = "n1=10.0.0.1/Down n2=10.0.0.2 ", "Updated"; i == at && terminal {
						words = "Failed" // and a check writes it later
					}
				case drains:
					want = "n1=10.0.0.1/Down n2=10.0.0.2/Down "
				}
				if i == other && *hasWritten {
					want += "vm2=10.9.9.8 "
				}
				want += "vm=10.9.9.9"
				if got := w.entries(id); got != want {
					rt.Errorf("%s, which is %s, holds %s, want %s: %q", id.Name, names[i], got, want, w.calls)
				}
				if got := w.final(id); got != words && (got != "Failed" || i != at || meets != "failed") { // alone at its end it is its own
					rt.Errorf("%s, which is %s, is told %q, want %q: %q", id.Name, names[i], got, words, w.calls)
				}
			}
			if meets == "nothing" && other < 0 {
				w.expectCheap(rt)
			}
		})
	})
}

// expectCheap expects that no retry was consumed, and that each pool was written twice at most.
func (pd *piped) expectCheap(t interface {
	Errorf(format string, args ...any)
}) {
	pd.set(func() {
		for _, r := range pd.reports {
			if r.RetriesUsed > 0 {
				t.Errorf("%s: %d retries", r.Ref.Name, r.RetriesUsed)
			}
		}
		writes := map[string]int{}
		for _, c := range pd.calls {
			var at, call, name string
			_, _ = fmt.Sscan(c, &at, &call, &name)
			if call == "BEGIN" || call == "PUT" {
				if writes[name]++; writes[name] > 2 {
					t.Errorf("%s is written more than twice: %q", name, pd.calls)
				}
			}
		}
	})
}
