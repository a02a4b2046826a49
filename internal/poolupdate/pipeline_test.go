// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/wholewrite"
)

// piped is an Azure in which pool writes overlap: a later one overtakes an earlier one, and its
// content persists. All pools share an etag, which each acceptance and the last completion change.
type piped struct {
	*whole
	version int
	newest  int // the last write
	// begins returns the response to a write about to be accepted; accepted runs after it.
	begins   func(pool lb.PoolID) error
	accepted func(pool lb.PoolID)
	// noop are pools with writes that change nothing; failing maps pools to the error of their
	// completion.
	noop    map[string]bool
	failing map[string]error
}

// inPipedWorld sets up n pools, p1 and so on, with overlapping writes.
func inPipedWorld(t *testing.T, n int, configure func(*Config), story func(w *piped, pools []lb.PoolID)) {
	azure := piped{version: 100, noop: map[string]bool{}, failing: map[string]error{}}
	inWholeWorldOf(t, n, func(c *Config) {
		azure.whole = c.LoadBalancers.(*whole)
		c.BatchSetting, c.PipelineSetting, c.Pipeline, c.ResyncPeriod = wholewrite.Never, wholewrite.Always, &azure, time.Hour
		configure(c)
	}, func(_ *whole, pools []lb.PoolID) {
		azure.readTime = 10 * time.Millisecond
		story(&azure, pools)
	})
}

// retag gives all pools a new etag. The caller holds w.mu.
func (w *piped) retag() string {
	w.version++
	for _, p := range w.pools {
		p.Etag = strconv.Itoa(w.version)
	}
	return strconv.Itoa(w.version)
}

func (w *piped) Begin(_ context.Context, p lb.Pool) (AcceptedWrite, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := p.ID.Name
	w.calls = append(w.calls, fmt.Sprintf("+%s BEGIN %s", time.Since(w.start), name))
	held := w.pools[p.ID.Key()]
	if w.begins != nil {
		if err := w.begins(p.ID); err != nil {
			return AcceptedWrite{}, err
		}
	}
	if held.Etag != p.Etag {
		return AcceptedWrite{}, fault.Classify(fault.Failure{Status: 412}, errors.New("etag"))
	}
	held.Addresses = p.Addresses
	w.newest++
	mine, begun := w.newest, AcceptedWrite{Completed: w.noop[name], Etag: w.retag()}
	ends := time.Now().Add(w.writeTime)
	begun.Wait = func(ctx context.Context, _ bool) (lb.Pool, error) {
		select {
		case <-time.After(time.Until(ends)):
		case <-ctx.Done():
			return lb.Pool{}, ctx.Err()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, fmt.Sprintf("+%s END %s", time.Since(w.start), name))
		if mine == w.newest {
			w.retag()
		}
		return *held, w.failing[name]
	}
	if w.accepted != nil {
		w.accepted(p.ID)
	}
	return begun, nil
}

// sent returns the calls since the last time, without times.
func (w *piped) sent() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, c := range w.calls {
		if f := strings.Fields(c); f[1] != "RECORD" {
			all = append(all, f[1]+" "+f[2])
		}
	}
	w.calls = nil
	return strings.Join(all, ", ")
}

func (w *piped) verdict() string {
	for k, n := range w.lanes.CountCapabilities("s") {
		if k[0] == "overlapping" && n == 1 {
			return k[1]
		}
	}
	return "none"
}

const (
	sentAll = "GET p1, BEGIN p1, GET p2, BEGIN p2, GET p3, BEGIN p3"
	endsOf3 = ", END p1, END p2, END p3, GET balancer"
)

func findsOut(s *shelf) func(*Config) {
	return func(c *Config) { c.PipelineSetting, c.CapabilityStore = wholewrite.Auto, s }
}

func always(*Config) {}

// Until this process has seen overtaken writes persist three times, each completion is awaited;
// then only the last one.
func TestTheEndOfEachIsAwaitedUntilItIsSeenThatItStays(t *testing.T) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		w.all(pools, "n1=10.0.0.1")
		w.expect("the first time", w.sent(), sentAll+endsOf3)
		w.expect("the verdict", w.verdict(), "supersede")
		for n := 2; n <= 3; n++ {
			w.all(pools, fmt.Sprintf("n%d=10.0.0.%d", n, n))
			w.expect("once more", w.sent(), sentAll+endsOf3)
		}
		w.all(pools, "n4=10.0.0.4")
		w.expect("from then on", w.sent(), sentAll+", END p3, GET balancer")
		w.restart("v1")
		w.all(pools, "n5=10.0.0.5")
		w.expect("another process", w.sent(), sentAll+endsOf3)
	})
}

// Whatever prevents a trial also ends a running one: admin states are written separately, whether
// nodes drain or return.
func TestATrialEndsWhereItIsNotCalm(t *testing.T) {
	const down, up = "n1=10.0.0.1 n8=10.0.0.8/Down", "n1=10.0.0.1 n8=10.0.0.8"
	for about, states := range map[string][2]string{"nodes drain": {up, down}, "nodes return": {down, up}} {
		t.Run(about, func(t *testing.T) {
			inPipedWorld(t, 3, findsOut(&shelf{}), func(w *piped, pools []lb.PoolID) {
				w.pool(pools[2], "n1=10.0.0.1 n8=10.0.0.8")
				w.drain(pools[2], states[0])
				w.wait(time.Minute)
				w.sent()
				w.set(func() {
					w.accepted = func(lb.PoolID) {
						w.accepted = nil
						go w.drain(pools[2], "n2=10.0.0.2 "+states[1])
					}
				})
				w.change(pools[2], "n2=10.0.0.2 "+states[0])
				w.all(pools[:2], "n1=10.0.0.1")
				if got := w.sent(); !strings.HasPrefix(got, "GET p1, BEGIN p1") || !strings.Contains(got, "PUT p3") || strings.Contains(got, "BEGIN p3") {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// A change that takes a node Down joins no trial.
func TestATrialTakesNoNodeDown(t *testing.T) {
	inPipedWorld(t, 4, findsOut(&shelf{}), func(w *piped, pools []lb.PoolID) {
		w.pool(pools[0], "n1=10.0.0.1 n2=10.0.0.2")
		w.all(pools[:1], "n1=10.0.0.1 n2=10.0.0.2")
		w.sent()
		w.change(pools[0], "n1=10.0.0.1 n2=10.0.0.2/Down n3=10.0.0.3")
		for _, id := range pools[1:] {
			w.change(id, "n1=10.0.0.1")
		}
		w.wait(time.Minute)
		if got := w.sent(); strings.Contains(got, "BEGIN p1") || !strings.Contains(got, "PUT p1") || strings.Count(got, "BEGIN") != 3 {
			t.Errorf("got %s", got)
		}
	})
}

// A write that overtook nothing teaches nothing and is no trial.
func TestWhatOvertakesNothingIsNoTrial(t *testing.T) {
	for about, configure := range map[string]func(w *piped, c *Config){
		"the writes change nothing":  func(w *piped, _ *Config) { w.noop["p1"], w.noop["p2"], w.noop["p3"] = true, true, true },
		"all but the first do":       func(w *piped, _ *Config) { w.noop["p2"], w.noop["p3"] = true, true },
		"Azure heeds no etag anyway": func(_ *piped, c *Config) { c.Behaviour.PoolIfMatch = behaviour.Ignored },
	} {
		t.Run(about, func(t *testing.T) {
			var s shelf
			inPipedWorld(t, 3, func(c *Config) {
				findsOut(&s)(c)
				configure(c.Pipeline.(*piped), c)
			}, func(w *piped, pools []lb.PoolID) {
				w.all(pools, "n1=10.0.0.1")
				w.wait(time.Minute)
				w.expect("the writes", w.sent(), sentAll+endsOf3)
				w.expect("the verdict", w.verdict(), "unknown")
				if v := s.holds["s"].Overlapping; v.Attempts != 0 {
					t.Errorf("on record: %+v", v)
				}
			})
		})
	}
}

// A write that fails at completion may have failed because of another's content: no pool is charged
// before its own attempt, and all pools of the load balancer are checked.
func TestAFailureAtTheEndIsNobodys(t *testing.T) {
	inPipedWorld(t, 4, always, func(w *piped, pools []lb.PoolID) {
		w.all(pools[3:], "n9=10.0.0.9")
		w.reports = nil
		w.sent()
		w.set(func() {
			w.failing["p3"] = fault.Classify(fault.Failure{OperationFailed: true, Codes: []string{"InternalServerError"}}, errors.New("failed"))
		})
		w.all(pools[:3], "n1=10.0.0.1")
		w.expect("what becomes of it", w.sent(), sentAll+endsOf3+", GET p1, GET p2, GET p3, GET p4")
		w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3", "p4 Unchanged")
	})
}

// moves starts or ends another client's write of a pool. The caller holds w.mu.
func (w *piped) moves(id lb.PoolID, state lb.Provisioning) { w.pools[id.Key()].Provisioning = state }

// While another client's write does not end, pools are not attempted separately for another
// interval, unless a node drains.
func TestAPipelineWaitsForSomebodyElsesWrite(t *testing.T) {
	for _, drains := range []bool{false, true} {
		inPipedWorld(t, 5, always, func(w *piped, pools []lb.PoolID) {
			w.pool(pools[3], "n9=10.0.0.9 n8=10.0.0.8")
			w.all(pools[3:4], "n9=10.0.0.9 n8=10.0.0.8")
			w.sent()
			w.set(func() { w.moves(pools[4], lb.Updating) })
			begun := time.Since(w.start)
			for _, id := range pools[:3] {
				w.change(id, "n1=10.0.0.1")
			}
			w.wait(10 * time.Second)
			if drains {
				w.drain(pools[3], "n9=10.0.0.9 n8=10.0.0.8/Down")
			}
			w.wait(2 * time.Minute)
			var byItself, drained time.Duration
			w.set(func() {
				for _, c := range w.calls {
					f := strings.Fields(c)
					at, _ := time.ParseDuration(f[0][1:])
					if f[1] == "GET" && f[2] == "p1" {
						byItself = at - begun
					}
					if f[1] == "PUT" && f[2] == "p4" {
						drained = at - begun
					}
				}
			})
			if !drains && (byItself < 2*interval-5*time.Second || byItself > 2*interval+10*time.Second) {
				t.Errorf("attempted by itself after %s: %s", byItself, w.sent())
			}
			if drains && (drained < 10*time.Second || drained > 12*time.Second) {
				t.Errorf("drained after %s: %s", drained, w.sent())
			}
		})
	}
}

// If the final read is rejected, pools are updated separately, after any Retry-After.
func TestAReadAtTheEndThatIsRefused(t *testing.T) {
	for _, named := range []bool{false, true} {
		inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
			times := 0
			w.refuse = func(string) *fault.Fault {
				if times++; times > 1 {
					return nil
				}
				for _, id := range pools { // another client writes
					w.pools[id.Key()].Addresses = addresses("vm=10.9.9.9")
				}
				w.retag()
				answer := fault.Failure{Status: 403}
				if named {
					answer = fault.Failure{Status: 429, RetryAt: time.Now().Add(20 * time.Second)}
				}
				return fault.Classify(answer, errors.New("refused"))
			}
			w.all(pools, "n1=10.0.0.1")
			want := sentAll + endsOf3 + ", GET p1, PUT p1, GET p2, PUT p2, GET p3, PUT p3"
			if named {
				want = sentAll + endsOf3 + ", " + sentAll + endsOf3
			}
			w.expect(fmt.Sprintf("a time is named: %t", named), w.sent(), want)
			w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3")
		})
	}
}

// locked returns the rejection of a write because another one is running.
func locked() error {
	return fault.Classify(fault.Failure{Status: 429, Codes: []string{"RetryableError", "RetryableErrorDueToAnotherOperation"}}, errors.New("locked"))
}

// refused makes Azure reject the next write of a pool. The caller holds w.mu.
func (w *piped) refused(pool lb.PoolID) {
	w.begins = func(id lb.PoolID) error {
		if id != pool {
			return nil
		}
		w.begins = nil
		return locked()
	}
}

// A rejection because another write is running counts as no attempt if that write was Weir's, and
// as a normal one otherwise.
func TestWhoseWriteALockIsFor(t *testing.T) {
	for _, others := range []bool{false, true} {
		inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
			w.set(func() {
				w.accepted = func(lb.PoolID) {
					if w.accepted = nil; others { // Weir's write has ended and another client's is running
						w.retag()
					}
				}
				w.refused(pools[1])
			})
			w.all(pools, "n1=10.0.0.1")
			w.wait(time.Minute)
			first := "p1 Written Updated:p1"
			if others {
				first = "p2 Retriable Retrying:p2"
			}
			w.set(func() {
				if got := w.reports[0]; !strings.HasPrefix(first, got.Ref.Name+" "+string(got.Outcome)) {
					t.Errorf("first %s %s, want %s", got.Ref.Name, got.Outcome, first)
				}
			})
		})
	}
}

// Only the third consecutive rejection proves Azure's behavior; an overtaken write that persists
// resets the count.
func TestTheThirdRefusalInARowIsAzuresAnswer(t *testing.T) {
	for _, tt := range []struct{ rounds, want string }{
		{"refused", "on"},
		{"refused refused", "on"},
		{"refused refused refused", "lock-429"},
		{"refused refused taken refused", "supersede"},
	} {
		inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
			for n, round := range strings.Fields(tt.rounds) {
				if round == "refused" {
					w.set(func() { w.refused(pools[1]) })
				}
				w.all(pools, fmt.Sprintf("n1=10.0.0.%d", n+1))
				w.wait(2 * time.Minute)
				w.set(func() {
					for _, id := range pools {
						want := fmt.Sprintf("10.0.0.%d", n+1)
						if !slices.ContainsFunc(w.pools[id.Key()].Addresses, func(a lb.Address) bool { return a.IP.String() == want }) {
							t.Errorf("%s: %s is without %s", tt.rounds, id.Name, want)
						}
					}
				})
			}
			w.expect(tt.rounds, w.verdict(), tt.want)
		})
	}
}

// A 412 may be caused by Weir's own write that is still running at the second read: a pool then
// found in sync was written, and its Service is notified.
func TestAnEchoThatRunsIsTold(t *testing.T) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		w.set(func() {
			w.begins = func(id lb.PoolID) error {
				if id != pools[1] {
					return nil
				}
				w.begins = nil
				p := w.pools[id.Key()]
				p.Addresses = addresses("vm=10.9.9.9 n1=10.0.0.1")
				p.Provisioning = lb.Updating
				w.retag()
				go func() {
					time.Sleep(5 * time.Second)
					w.set(func() { p.Provisioning = lb.Succeeded; w.retag() })
				}()
				return fault.Classify(fault.Failure{Status: 412, MayBeApplied: true}, errors.New("etag"))
			}
		})
		w.all(pools, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.set(func() {
			for _, r := range w.reports {
				if r.Ref.Name == "p2" && len(r.Updated) > 0 {
					return
				}
			}
			t.Errorf("nobody heard of p2: %v", w.calls)
		})
	})
}

// A trial that cannot be recorded gives its turn to the next pool.
func TestATrialThatIsNotOnRecordLeavesTheTurn(t *testing.T) {
	var s shelf
	inPipedWorld(t, 3, findsOut(&s), func(w *piped, pools []lb.PoolID) {
		w.wait(time.Second)
		s.mu.Lock()
		s.away = true
		s.mu.Unlock()
		w.change(pools[0], "n1=10.0.0.1")
		w.change(pools[1], "n1=10.0.0.1")
		w.wait(200 * time.Millisecond)
		w.set(func() { w.wanted["p3"] = addresses("n1=10.0.0.1") })
		w.lanes.Add(poolschedule.Operation{Ref: poolschedule.Ref{Name: "p3"}, Pool: pools[2], Service: poolschedule.ServiceName{Name: "p3"}, ChangedAt: time.Now(), Impact: poolschedule.Impact{Stopping: 1}})
		w.wait(time.Minute)
		w.expect("one by one", w.sent(), "GET p1, PUT p1, GET p3, PUT p3, GET p2, PUT p2")
	})
}

// If Azure rolls back overtaken writes, all pools of the load balancer are checked.
func TestWhatIsTakenBackHasAllPoolsLookedAt(t *testing.T) {
	inPipedWorld(t, 4, always, func(w *piped, pools []lb.PoolID) {
		w.all(pools[3:], "n9=10.0.0.9")
		w.sent()
		w.set(func() {
			w.accepted = func(id lb.PoolID) {
				if id == pools[2] {
					w.pools[pools[0].Key()].Addresses, w.pools[pools[1].Key()].Addresses = addresses("vm=10.9.9.9"), addresses("vm=10.9.9.9")
				}
			}
		})
		w.all(pools[:3], "n1=10.0.0.1")
		w.expect("the calls", w.sent(), sentAll+endsOf3+", GET p1, PUT p1, GET p2, PUT p2, GET p4")
		w.expect("the verdict", w.verdict(), "supersede-discard")
	})
}

// Until a Retry-After of the final read has passed, changes are written separately and reported on
// completion.
func TestNoRowBeginsThatNoReadWouldEnd(t *testing.T) {
	inPipedWorld(t, 6, always, func(w *piped, pools []lb.PoolID) {
		w.refuse = func(string) *fault.Fault {
			w.refuse = nil
			return fault.Classify(fault.Failure{Status: 429, RetryAt: time.Now().Add(3 * time.Minute)}, errors.New("refused"))
		}
		rest := pools[3:]
		w.all(pools[:3], "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expect("a row", w.sent(), sentAll+endsOf3)
		w.all(rest, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expect("while the read is refused, and then", w.sent(), "GET p4, PUT p4, GET p5, PUT p5, GET p6, PUT p6, GET p1, GET p2, GET p3")
		w.wait(2 * time.Minute)
		w.sent()
		w.all(rest, "n1=10.0.0.2")
		w.wait(time.Minute)
		w.expect("afterwards", w.sent(), "GET p4, BEGIN p4, GET p5, BEGIN p5, GET p6, BEGIN p6, END p4, END p5, END p6, GET balancer")
	})
}
