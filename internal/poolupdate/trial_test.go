// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// shelf stores Azure's observed behavior, like the API server.
type shelf struct {
	mu    sync.Mutex
	holds map[string]wholewrite.Record
	away  bool // it does not respond
	// kept lists the stored records in order; then runs after each.
	kept []string
	then func()
}

func (s *shelf) ReadRecords(context.Context) (map[string]wholewrite.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errors.New("no answer")
	}
	return maps.Clone(s.holds), nil
}

func (s *shelf) WriteRecord(_ context.Context, subscription string, r wholewrite.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errors.New("no answer")
	}
	if s.holds == nil {
		s.holds = map[string]wholewrite.Record{}
	}
	s.holds[subscription] = r
	s.kept = append(s.kept, fmt.Sprintf("%s: addresses %q after %d, admin states %q after %d", r.Version,
		r.Addresses.Answer, r.Addresses.Attempts, r.AdminStates.Answer, r.AdminStates.Attempts))
	if s.then != nil {
		s.then()
	}
	return nil
}

// inAutoWorld sets up n pools in which support for load balancer writes is discovered.
func inAutoWorld(t *testing.T, n int, story func(w *whole, s *shelf, pools []lb.PoolID)) {
	var s shelf
	inWholeWorldOf(t, n, func(c *Config) { c.BatchSetting, c.CapabilityStore = wholewrite.Auto, &s }, func(w *whole, pools []lb.PoolID) { story(w, &s, pools) })
}

// restart stops Weir and starts another version.
func (w *whole) restart(version string) {
	w.wait(0) // the previous one runs
	cfg := w.lanes.cfg
	cfg.Version = version
	w.lanes = New(cfg)
	ctx, stop := context.WithCancel(w.t.Context())
	w.t.Cleanup(stop)
	go w.lanes.Run(ctx)
	w.wait(0)
}

// all changes the members of each pool.
func (w *whole) all(pools []lb.PoolID, members string) {
	for _, id := range pools {
		w.change(id, members)
	}
	w.wait(time.Minute)
}

const (
	asTrial  = "GET balancer, PUT balancer, GET balancer"
	asOne    = "GET balancer, PUT balancer"
	byItself = "GET p1, PUT p1, GET p2, PUT p2, GET p3, PUT p3"
)

// With support: during a drain nothing is tried and pools are written separately. The first change
// of addresses at a quiet time is the trial, and returning nodes are that of admin states. From
// then on both are batched, also after a restart; another version starts over.
func TestWholeWritesEarnTheirPlace(t *testing.T) {
	inAutoWorld(t, 3, func(w *whole, s *shelf, pools []lb.PoolID) {
		w.drainAll(pools, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(time.Minute)
		w.expect("a drain", w.wrote(), byItself)
		w.all(pools, "n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3")
		w.expect("a change", w.wrote(), asTrial)
		w.drainAll(pools, "n1=10.0.0.1/Down n2=10.0.0.2/Down n3=10.0.0.3")
		w.wait(time.Minute)
		w.expect("a drain, of which the verdict says nothing", w.wrote(), byItself)
		w.drainAll(pools, "n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3")
		w.wait(time.Minute)
		w.expect("they return", w.wrote(), asTrial)
		w.drainAll(pools, "n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3")
		w.wait(time.Minute)
		w.expect("a drain", w.wrote(), asOne)
		w.expect("on record", strings.Join(s.kept, "\n"), strings.Join([]string{
			`v1: addresses "" after 1, admin states "" after 0`, `v1: addresses "taken" after 1, admin states "" after 0`,
			`v1: addresses "taken" after 1, admin states "" after 1`, `v1: addresses "taken" after 1, admin states "taken" after 1`}, "\n"))

		w.restart("v1")
		w.drainAll(pools, "n1=10.0.0.1/Down n2=10.0.0.2/Down n3=10.0.0.3")
		w.wait(time.Minute)
		w.expect("a drain after a restart, which reads back what it has not seen itself", w.wrote(), asTrial)
		w.restart("v2")
		w.drainAll(pools, "n1=10.0.0.1/Down n2=10.0.0.2/Down n3=10.0.0.3/Down")
		w.wait(time.Minute)
		w.expect("a drain after an upgrade", w.wrote(), byItself)
		w.outcomes()
		w.all(pools, "n1=10.0.0.1/Down n2=10.0.0.2/Down n3=10.0.0.3/Down n4=10.0.0.4")
		w.expect("another version finds out anew", w.wrote(), asTrial)
		w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3")
		if got := fmt.Sprint(w.lanes.CountCapabilities("S")); got != "map[[addresses taken]:1 [admin_states unknown]:1 [overlapping off]:1]" {
			t.Errorf("the metric says %s", got)
		}
	})
}

// Without support the trial costs one write and two reads, once: no retry, notification or change.
func TestATrialIsHarmless(t *testing.T) {
	inAutoWorld(t, 3, func(w *whole, s *shelf, pools []lb.PoolID) {
		w.ignores = true
		w.all(pools, "n1=10.0.0.1")
		w.expect("the trial", w.wrote(), asTrial+", "+byItself)
		w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3")
		w.all(pools, "n2=10.0.0.2")
		w.expect("from then on", w.wrote(), byItself)
		w.outcomes()

		var others []lb.PoolID
		for i := range 3 {
			others = append(others, poolID("second", fmt.Sprintf("p%d", i+4)))
			w.set(func() { w.pool(others[i], "") })
		}
		w.all(others, "n1=10.0.0.1")
		w.expect("on another load balancer of the subscription", w.wrote(), "GET p4, PUT p4, GET p5, PUT p5, GET p6, PUT p6")
		w.restart("v1")
		w.all(pools, "n3=10.0.0.3")
		w.expect("after a restart", w.wrote(), byItself)
		w.wait(wholewrite.ResultTTL)
		w.all(pools, "n4=10.0.0.4")
		w.expect("after 30 days", w.wrote(), asTrial+", "+byItself)
		w.restart("v2")
		w.all(pools, "n5=10.0.0.5")
		w.expect("by another version", w.wrote(), asTrial+", "+byItself)
		w.expect("on record", s.kept[len(s.kept)-1], `v2: addresses "ignored" after 1, admin states "" after 0`)
		if w.spent() {
			t.Error("it costs retries")
		}
	})
}

// A rejected trial, or one without a response, is inconclusive and repeated an hour later, at most
// twice, at no cost and without notifications.
func TestATrialWithoutAVerdictIsBounded(t *testing.T) {
	for name, given := range map[string]fault.Failure{
		"lost": {ResultUnknown: true}, "403": {Status: 403}, "503": {Status: 503}, "429": {Status: 429}, "409": {Status: 409},
		"failed": {OperationFailed: true, Codes: []string{"Other"}}, "412 without end": {Status: 412},
	} {
		t.Run(name, func(t *testing.T) {
			inAutoWorld(t, 3, func(w *whole, s *shelf, pools []lb.PoolID) {
				w.refuse = func(call string) *fault.Fault {
					if call != "PUT" {
						return nil
					}
					return fault.Classify(given, errors.New(name))
				}
				trial := asOne + ", "
				if name == "412 without end" {
					trial += asOne + ", "
				}
				for i, want := range []string{trial, "", trial, trial, "", ""} {
					w.all(pools, fmt.Sprintf("n%d=10.0.0.%d", i, i+1))
					w.expect(fmt.Sprint("change ", i), strings.ReplaceAll(w.wrote(), byItself, ""), want)
					w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3")
					if i > 0 {
						w.wait(time.Hour)
					}
				}
				w.expect("on record", s.kept[len(s.kept)-1], `v1: addresses "" after 3, admin states "" after 0`)
				if w.spent() {
					t.Error("it costs retries")
				}
			})
		})
	}
}

// Retry-After in response to a trial is honored.
func TestATrialHearsRetryAfter(t *testing.T) {
	inAutoWorld(t, 3, func(w *whole, _ *shelf, pools []lb.PoolID) {
		w.refuse = func(call string) *fault.Fault {
			if call != "PUT" {
				return nil
			}
			return fault.Classify(fault.Failure{Status: 429, RetryAt: w.start.Add(10 * time.Minute)}, errors.New("busy"))
		}
		w.all(pools, "n1=10.0.0.1")
		w.expect("calls", w.wrote(), asOne)
		w.wait(10 * time.Minute)
		w.expect("calls", w.wrote(), byItself)
		w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3")
	})
}

// Nothing is tried without a record, nor before the record was read.
func TestATrialIsOnRecordFirst(t *testing.T) {
	inAutoWorld(t, 3, func(w *whole, s *shelf, pools []lb.PoolID) {
		s.mu.Lock()
		s.away = true
		s.mu.Unlock()
		w.restart("v1")
		w.all(pools, "n1=10.0.0.1")
		w.expect("it is not read", w.wrote(), byItself)
		s.mu.Lock()
		s.away = false
		s.mu.Unlock()
		w.wait(interval)
		s.mu.Lock()
		s.away = true
		s.mu.Unlock()
		w.all(pools, "n2=10.0.0.2")
		w.expect("it cannot be written", w.wrote(), "GET balancer, "+byItself)
		s.mu.Lock()
		s.away = false
		s.mu.Unlock()
		w.wait(time.Hour)
		w.set(func() { w.during = func() { s.mu.Lock(); s.away = true; s.mu.Unlock() } })
		w.all(pools, "n3=10.0.0.3")
		w.expect("the trial", w.wrote(), asTrial)
		w.all(pools, "n4=10.0.0.4")
		w.expect("the verdict holds though it is not on record", w.wrote(), asOne)
		s.mu.Lock()
		s.away = false
		s.mu.Unlock()
		w.wait(2 * interval)
		s.mu.Lock()
		defer s.mu.Unlock()
		w.expect("and comes to be", fmt.Sprint(s.holds["s"].Addresses.Answer), "taken")
	})
}

// The first write notices that Azure no longer supports it, whatever the source of that knowledge.
func TestAVerdictEndsWithWhatAzureShows(t *testing.T) {
	for name, known := range map[string]func(*Config){
		"by a trial": func(*Config) {}, "by a file": func(c *Config) { c.Behaviour = taking },
	} {
		t.Run(name, func(t *testing.T) {
			var s shelf
			inWholeWorldOf(t, 3, func(c *Config) { c.BatchSetting, c.CapabilityStore = wholewrite.Auto, &s; known(c) }, func(w *whole, pools []lb.PoolID) {
				w.all(pools, "n1=10.0.0.1")
				w.wrote()
				w.all(pools, "n2=10.0.0.2")
				w.expect("while it does", w.wrote(), asOne)
				w.ignores = true
				w.all(pools, "n3=10.0.0.3")
				w.expect("when it does not", w.wrote(), asOne+", "+byItself)
				w.all(pools, "n4=10.0.0.4")
				w.expect("from then on", w.wrote(), byItself)
				w.expect("on record", s.kept[len(s.kept)-1][:len(`v1: addresses "ignored"`)], `v1: addresses "ignored"`)
				if w.spent() {
					t.Error("it costs retries")
				}
			})
		})
	}
}

// Two load balancers have work at the same time: one of them runs the trial. Whether the other one
// still has pools to batch afterwards depends on the order.
func TestOneTrialASubscription(t *testing.T) {
	inAutoWorld(t, 3, func(w *whole, s *shelf, pools []lb.PoolID) {
		for i := range 3 {
			id := poolID("second", fmt.Sprintf("p%d", i+4))
			w.set(func() { w.pool(id, "") })
			pools = append(pools, id)
		}
		w.all(pools, "n1=10.0.0.1")
		w.expect("on record", strings.Join(s.kept, "\n"), strings.Join([]string{
			`v1: addresses "" after 1, admin states "" after 0`, `v1: addresses "taken" after 1, admin states "" after 0`,
		}, "\n"))
		w.outcomes()
	})
}

// A drain prevents a trial: its pools go first.
func TestADrainEndsATrialBeforeItBegins(t *testing.T) {
	inAutoWorld(t, 4, func(w *whole, _ *shelf, pools []lb.PoolID) {
		w.all(pools[3:], "n1=10.0.0.1 n2=10.0.0.2")
		w.wrote()
		w.readTime = time.Second
		for _, id := range pools[:3] {
			w.change(id, "n1=10.0.0.1")
		}
		time.Sleep(debounce + w.readTime/2) // the load balancer is being read
		w.drainAll(pools[3:], "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(time.Minute)
		w.expect("calls", w.wrote(), "GET balancer, GET p4, PUT p4, "+byItself)
	})
}
