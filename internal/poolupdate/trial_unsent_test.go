// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// trials returns the recorded number of trials of addresses.
func (s *shelf) trials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds["s"].Addresses.Attempts
}

// An interruption between the record and the write of a trial leaves no trial: the next quiet time
// has one.
func TestATrialThatWasNotSentIsNone(t *testing.T) {
	var lease oneLease
	for name, ending := range map[string]func(w *whole){
		"the lease is lost": func(*whole) { lease.set(func() { lease.lost = true }) },
		"all but two of the pools are paused": func(w *whole) {
			w.set(func() { w.gone["p1"] = true })
		},
		"a gate closes": func(w *whole) {
			w.set(func() {
				w.refuse = func(call string) *fault.Fault {
					if call != "PUT" {
						return nil
					}
					return fault.Classify(fault.Failure{GateClosed: true, RetryAt: time.Now().Add(time.Second)}, errors.New("closed"))
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s shelf
			lease.lost = false
			inWholeWorldOf(t, 3, func(c *Config) { c.BatchSetting, c.CapabilityStore, c.Lease = wholewrite.Auto, &s, &lease }, func(w *whole, pools []lb.PoolID) {
				s.then = func() { s.then = nil; ending(w) }
				for _, id := range pools {
					w.change(id, "n1=10.0.0.1")
				}
				w.wait(debounce + 100*time.Millisecond)
				if wrote := w.wrote(); name != "a gate closes" && strings.Contains(wrote, "PUT balancer") {
					t.Errorf("written all the same: %s", wrote)
				}
				if n := s.trials(); n != 0 {
					t.Errorf("%d trials on record: %q", n, s.kept)
				}
				lease.set(func() { lease.lost = false })
				w.set(func() { w.gone, w.refuse = map[string]bool{}, nil })
				w.wait(time.Minute)
				w.wrote()
				w.all(pools, "n2=10.0.0.2")
				w.expect("the next calm moment", w.wrote(), asTrial)
				if n := s.trials(); n != 1 {
					t.Errorf("%d trials on record: %q", n, s.kept)
				}
			})
		})
	}
}

// Changes that join after a conflicting write are not in the trial's record, so they are not tried
// with it.
func TestTheSecondWriteTriesWhatIsOnRecord(t *testing.T) {
	inAutoWorld(t, 3, func(w *whole, s *shelf, pools []lb.PoolID) {
		w.drainAll(pools, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(time.Minute)
		w.wrote()
		w.refuse = func(call string) *fault.Fault {
			if call != "PUT" {
				return nil
			}
			w.refuse = nil
			for _, id := range pools {
				w.wanted[id.Name] = addresses("n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3")
			}
			return fault.Classify(fault.Failure{Status: 412}, errors.New("somebody was faster"))
		}
		w.all(pools, "n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3")
		w.expect("a node returns meanwhile", w.wrote(), "GET balancer, PUT balancer, GET balancer, "+byItself)
		if got := s.kept[len(s.kept)-1]; !strings.HasSuffix(got, `admin states "" after 0`) {
			t.Errorf("on record: %q", got)
		}
		w.expectPool(pools[0], "vm=10.9.9.9 n1=10.0.0.1/None n2=10.0.0.2 n3=10.0.0.3")
	})
}

// A record that cannot be written only costs a wait, and never counts as a trial.
func TestATrialThatCouldNotBeRecordedIsNone(t *testing.T) {
	inAutoWorld(t, 3, func(w *whole, s *shelf, pools []lb.PoolID) {
		w.wait(time.Second)
		away := func(is bool) { s.mu.Lock(); s.away = is; s.mu.Unlock() }
		for i := range 5 {
			away(true)
			w.all(pools, fmt.Sprintf("n%d=10.0.0.%d", i, i+1))
			w.expect("while it cannot", w.wrote(), "GET balancer, "+byItself)
			w.all(pools, fmt.Sprintf("n%d=10.0.1.%d", i, i+1))
			w.expect("within the hour", w.wrote(), byItself)
			away(false)
			w.wait(time.Hour)
		}
		if n := s.trials(); n != 0 {
			t.Errorf("%d trials on record: %q", n, s.kept)
		}
		w.wrote()
		w.all(pools, "n9=10.0.0.9")
		w.expect("once it can", w.wrote(), asTrial)
	})
}

// A pool that is no longer needed while its write is recorded is not written: alone, in a batch or
// in a trial. That is silent, and requeued operations are written at once.
func TestWhoGoesWhileTheRecordIsWrittenIsNotWritten(t *testing.T) {
	for name, setting := range map[string]wholewrite.Setting{"each by itself": wholewrite.Never, "together": wholewrite.Always, "on trial": wholewrite.Auto} {
		t.Run(name, func(t *testing.T) {
			var s shelf
			inWholeWorldOf(t, 4, func(c *Config) { c.BatchSetting, c.CapabilityStore = setting, &s }, func(w *whole, pools []lb.PoolID) {
				w.set(func() {
					w.fail = func(call string, id lb.PoolID) error {
						if call == "RECORD" && id.Name == "p1" {
							w.gone["p1"] = true
						}
						return nil
					}
				})
				w.all(pools, "n1=10.0.0.1")
				w.expectPool(pools[0], "vm=10.9.9.9")
				w.expectPool(pools[3], "vm=10.9.9.9 n1=10.0.0.1")
				w.expectReports("p2 Written Updated:p2", "p3 Written Updated:p3", "p4 Written Updated:p4")
				if got := w.lanes.Backlog(); got.Operations > 0 {
					t.Errorf("%+v", got)
				}
				if n := w.standing(pools[0]).history.DelayCount; n > 0 {
					t.Errorf("postponed %d times, which forbids trials", n)
				}
				w.set(func() { w.gone, w.fail = map[string]bool{}, func(string, lb.PoolID) error { return nil } })
				began := time.Now()
				w.change(pools[0], "n2=10.0.0.2")
				w.wait(time.Minute)
				w.expectPool(pools[0], "vm=10.9.9.9 n2=10.0.0.2")
				if r := w.reports[0]; r.At.Sub(began) > 3*time.Second {
					t.Errorf("written after %s", r.At.Sub(began))
				}
			})
		})
	}
}

// A Retry-After of a rejected load balancer write, such as a 412, applies to each of its pools, in
// a trial or not.
func TestARefusedWholeWriteHearsRetryAfter(t *testing.T) {
	for _, setting := range []wholewrite.Setting{wholewrite.Always, wholewrite.Auto} {
		for _, status := range []int{412, 400, 409} {
			t.Run(fmt.Sprint(setting, " ", status), func(t *testing.T) {
				var s shelf
				inWholeWorldOf(t, 3, func(c *Config) { c.BatchSetting, c.CapabilityStore = setting, &s }, func(w *whole, pools []lb.PoolID) {
					until := w.start.Add(10 * time.Minute)
					w.refuse = func(call string) *fault.Fault {
						if call != "PUT" || time.Now().After(until) {
							return nil
						}
						return fault.Classify(fault.Failure{Status: status, RetryAt: until}, errors.New("not now"))
					}
					w.all(pools, "n1=10.0.0.1")
					w.wait(time.Until(until) - time.Second)
					w.expect("until then", w.wrote(), asOne)
					w.wait(time.Minute)
					for _, id := range pools {
						w.expectPool(id, "vm=10.9.9.9 n1=10.0.0.1")
					}
				})
			})
		}
	}
}

// A pool that Azure always rejects does not affect the others: it is excluded from their trial.
func TestAPoolThatAlwaysFailsForbidsNoTrial(t *testing.T) {
	for name, refusal := range map[string]fault.Failure{
		"refused": {Status: 400, Codes: []string{"Poison"}}, "in conflict": {Status: 409, Codes: []string{"AnotherOperationInProgress"}},
	} {
		t.Run(name, func(t *testing.T) {
			inAutoWorld(t, 4, func(w *whole, _ *shelf, pools []lb.PoolID) {
				w.failingPool("PUT", pools[3], -1, func() fault.Failure { return refusal })
				w.change(pools[3], "n1=10.0.0.1")
				w.wait(5 * interval)
				w.wrote()
				w.all(pools, "n2=10.0.0.2")
				if wrote := w.wrote(); !strings.HasPrefix(wrote, asTrial+", GET p4, PUT p4") || strings.Contains(wrote, "PUT p1") {
					t.Errorf("the trial: %s", wrote)
				}
				for _, id := range pools[:3] {
					w.expectPool(id, "vm=10.9.9.9 n2=10.0.0.2")
				}
			})
		})
	}
}
