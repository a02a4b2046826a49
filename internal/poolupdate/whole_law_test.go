// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// What a pool is when others are due.
const (
	isDue    = "due"
	isQuiet  = "quiet"  // nothing waits for it
	isParked = "parked" // Azure has asked to leave it alone
	isNIC    = "nic"    // it holds network interfaces
)

// faults are what a write of the whole load balancer may meet, once.
var faults = map[string]*fault.Answer{
	"nothing": nil, "412": {Status: 412}, "429": {Status: 429}, "409": {Status: 409}, "400": {Status: 400}, "503": {Status: 503},
	"lost":      {OutcomeUnknown: true},
	"failed":    {OperationEnded: true, Codes: []string{"Other"}},
	"overtaken": {OperationEnded: true, Codes: []string{"CanceledAndSupersededDueToAnotherOperation"}},
}

// entries are what a pool holds, in the order of their names.
func (w *whole) entries(id lb.PoolID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Fields(spell(w.pools[id.Key()].Addresses))
	slices.Sort(all)
	return strings.Join(all, " ")
}

// settled counts the reports of a pool that is level, but for those of looks.
func (w *whole) settled(id lb.PoolID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.reports {
		if r.Ref.Name == id.Name && r.Settled && !r.Drift {
			n++
		}
	}
	return n
}

// Whatever is due, parked or not to be written, whatever the write meets and whoever else
// writes in between: nothing foreign is lost, what is not due stays as it is, a change of the
// membership takes no admin state back, and each change is settled once.
func TestLawOfWholeWrites(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(3, 6).Draw(rt, "pools")
		var is []string
		for i := range n {
			is = append(is, rapid.SampledFrom([]string{isDue, isDue, isDue, isQuiet, isParked, isNIC}).Draw(rt, fmt.Sprint("p", i+1)))
		}
		meets := faults[rapid.SampledFrom([]string{"nothing", "412", "429", "409", "400", "503", "lost", "failed", "overtaken"}).Draw(rt, "meets")]
		other := rapid.IntRange(-1, n-1).Draw(rt, "somebody else writes")
		inWholeWorld(t, n, func(w *whole, pools []lb.PoolID) {
			w.drainAll(pools, "n1=10.0.0.1/Down")
			w.wait(time.Minute)
			for i, id := range pools {
				switch is[i] {
				case isParked:
					w.failingPool("PUT", id, 1, func() fault.Answer {
						return fault.Answer{Status: 429, RetryAt: time.Now().Add(time.Hour)}
					})
					w.change(id, "n1=10.0.0.1/Down n2=10.0.0.2")
					w.wait(10 * time.Second)
				case isNIC:
					w.set(func() { w.pools[id.Key()].NIC = true })
				}
			}
			w.outcomes()
			wrote := w.meets(meets, other, pools)
			for i, id := range pools {
				if is[i] == isDue || is[i] == isNIC {
					w.change(id, "n1=10.0.0.1/Down n2=10.0.0.2")
				}
			}
			w.wait(10 * time.Minute)
			for i, id := range pools {
				want, times := "n1=10.0.0.1/Down ", 0
				if is[i] == isDue {
					want, times = "n1=10.0.0.1/Down n2=10.0.0.2 ", 1
				}
				if i == other && *wrote {
					want += "vm2=10.9.9.8 "
				}
				want += "vm=10.9.9.9"
				if got := w.entries(id); got != want {
					rt.Errorf("%s, which is %s, holds %s, want %s: %q", id.Name, is[i], got, want, w.calls)
				}
				if got := w.settled(id); got != times {
					rt.Errorf("%s, which is %s, is settled %d times, want %d", id.Name, is[i], got, times)
				}
			}
		})
	})
}

// meets has the next write of the load balancer meet an answer, or somebody else be faster
// than it with an address of a pool; -1 is nobody. wrote says whether that came about.
func (w *whole) meets(answer *fault.Answer, other int, pools []lb.PoolID) (wrote *bool) {
	wrote = new(bool)
	w.set(func() {
		w.refuse = func(call string) *fault.Fault {
			if call != "PUT" || answer == nil {
				return nil
			}
			met := *answer
			answer = nil
			return fault.Classify(met, errors.New("met"))
		}
		w.during = func() {
			w.set(func() {
				if other >= 0 && !*wrote {
					*wrote = true
					p := w.pools[pools[other].Key()]
					p.Addresses, p.Etag = append(slices.Clone(p.Addresses), addresses("vm2=10.9.9.8")...), p.Etag+"1"
				}
			})
		}
	})
	return wrote
}
