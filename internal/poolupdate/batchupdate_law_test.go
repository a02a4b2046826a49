// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// The state of a pool when others are due.
const (
	isDue    = "due"
	isQuiet  = "quiet"  // nothing pending
	isParked = "parked" // waits for Retry-After
	isNIC    = "nic"    // holds network interfaces
)

// faults are the errors that a load balancer write may meet once.
var faults = map[string]*fault.Failure{
	"nothing": nil, "412": {Status: 412}, "429": {Status: 429}, "409": {Status: 409}, "400": {Status: 400},
	unanswered:  {Status: 503},
	"lost":      {ResultUnknown: true},
	landed:      {ResultUnknown: true},
	"failed":    {OperationFailed: true, Codes: []string{"Other"}},
	"overtaken": {OperationFailed: true, Codes: []string{"CanceledAndSupersededDueToAnotherOperation"}},
}

const (
	unanswered = "503"
	landed     = "lost when it had landed"
)

// Initial knowledge of Azure, by setting.
var knowings = map[string]func(*Config){
	"it is true":          func(c *Config) { c.BatchSetting = wholewrite.Always },
	"nothing":             func(c *Config) { c.BatchSetting = wholewrite.Auto },
	"that Azure takes it": func(c *Config) { c.BatchSetting, c.Behaviour = wholewrite.Auto, taking },
	"that it is ignored":  func(c *Config) { c.BatchSetting, c.Behaviour = wholewrite.Auto, ignoring },
}

// entries returns a pool's content sorted by name.
func (w *whole) entries(id lb.PoolID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Fields(spell(w.pools[id.Key()].Addresses))
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Whatever is due, parked or excluded, whatever error the write meets, whatever Azure does and is
// known to do, and whichever other client writes in between: no foreign member is lost, pools that
// are not due stay unchanged, a membership change resets no admin state, and each change is settled
// and reported once. If Azure does not respond, the SDK has retried: each change has failed and
// nothing is written twice. A trial costs no pool anything.
func TestLawOfWholeWrites(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(3, 6).Draw(rt, "pools")
		var is []string
		for i := range n {
			is = append(is, rapid.SampledFrom([]string{isDue, isDue, isDue, isQuiet, isParked, isNIC}).Draw(rt, fmt.Sprint("p", i+1)))
		}
		meets := rapid.SampledFrom(slices.Sorted(maps.Keys(faults))).Draw(rt, "meets")
		known := rapid.SampledFrom(slices.Sorted(maps.Keys(knowings))).Draw(rt, "known")
		other := rapid.IntRange(-1, n-1).Draw(rt, "somebody else writes")
		ignores := rapid.Bool().Draw(rt, "Azure ignores it")
		inWholeWorldOf(t, n, knowings[known], func(w *whole, pools []lb.PoolID) {
			w.drainAll(pools, "n1=10.0.0.1/Down")
			w.wait(time.Minute)
			for i, id := range pools {
				switch is[i] {
				case isParked:
					w.failingPool("PUT", id, 1, func() fault.Failure {
						return fault.Failure{Status: 429, RetryAt: time.Now().Add(time.Hour)}
					})
					w.change(id, "n1=10.0.0.1/Down n2=10.0.0.2")
					w.wait(10 * time.Second)
				case isNIC:
					w.set(func() { w.pools[id.Key()].NIC = true })
				}
			}
			w.outcomes()
			w.wrote()
			w.ignores = ignores
			met := w.meets(meets, other, pools)
			for i, id := range pools {
				if is[i] == isDue || is[i] == isNIC {
					w.change(id, "n1=10.0.0.1/Down n2=10.0.0.2")
				}
			}
			w.wait(10 * time.Minute)
			failed := meets == unanswered && met.it && known != "nothing"
			for i, id := range pools {
				want, words := "n1=10.0.0.1/Down ", ""
				switch {
				case is[i] != isDue:
				case failed:
					words = "Failed"
				default:
					want, words = "n1=10.0.0.1/Down n2=10.0.0.2 ", "Updated"
				}
				if i == other && met.other {
					want += "vm2=10.9.9.8 "
				}
				want += "vm=10.9.9.9"
				if got := w.entries(id); got != want {
					rt.Errorf("%s, which is %s, holds %s, want %s: %q", id.Name, is[i], got, want, w.calls)
				}
				if got := w.final(id); got != words {
					rt.Errorf("%s, which is %s, is told %q, want %q", id.Name, is[i], got, words)
				}
			}
			if wrote := w.wrote(); failed && strings.Count(wrote, "PUT") > 1 {
				rt.Errorf("what nobody answered is written again: %s", wrote)
			}
			if known == "nothing" && w.spent() {
				rt.Error("a trial, or what follows it, costs retries")
			}
		})
	})
}

// final returns the last notifications of a pool, without those of checks.
func (w *whole) final(id lb.PoolID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, r := range w.reports {
		if r.Ref.Name != id.Name || r.Resync {
			continue
		}
		for range r.Updated {
			all = append(all, "Updated")
		}
		for range r.Failed {
			all = append(all, "Failed")
		}
	}
	return strings.Join(all, " ")
}

// spent reports whether any retry was consumed.
func (w *whole) spent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.reports, func(r Report) bool { return r.RetriesUsed > 0 })
}

// met is whether the planned error and conflict occurred.
type met struct{ it, other bool }

// meets makes the next load balancer write meet an error, or a conflicting write of pool number
// other; -1 is none.
func (w *whole) meets(what string, other int, pools []lb.PoolID) *met {
	m := new(met)
	answer := faults[what]
	w.set(func() {
		w.loses = func() bool {
			was := m.it
			m.it = m.it || what == landed
			return m.it && !was
		}
		w.refuse = func(call string) *fault.Fault {
			if call != "PUT" || answer == nil || what == landed || m.it {
				return nil
			}
			m.it = true
			return fault.Classify(*answer, errors.New("met"))
		}
		w.during = func() {
			w.set(func() {
				if other >= 0 && !m.other {
					m.other = true
					p := w.pools[pools[other].Key()]
					p.Addresses, p.Etag = append(slices.Clone(p.Addresses), addresses("vm2=10.9.9.8")...), p.Etag+"1"
				}
			})
		}
	})
	return m
}
