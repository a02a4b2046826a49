// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/pool/schedule"
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
	// answer is the response to a write while another is running; empty keeps its content.
	answer  behavior.Result
	running runningWrite
	// endsAfter delays the completion of overtaken writes; zero is not at all.
	endsAfter time.Duration
	// ignoresEtags accepts a write with any etag.
	ignoresEtags bool
	// endsInOrder has each write succeed, as if it had ended before the next was accepted.
	endsInOrder bool
}

type runningWrite struct {
	number   int
	ends     time.Time
	rollback func()
}

// overtake applies the answer to the running write. The caller holds pd.mu.
func (pd *piped) overtake() error {
	if running := pd.running; !time.Now().Before(running.ends) {
		return nil
	}
	switch pd.answer {
	case behavior.Lock:
		return locked()
	case behavior.Conflict:
		return armerror.Classify(armerror.Failure{Status: 409, Codes: []string{"AnotherOperationInProgress"}}, errors.New("conflict"))
	case behavior.SupersedeDiscard:
		pd.running.rollback()
	case behavior.SupersedeDiscardLate:
		running := pd.running
		go func() {
			time.Sleep(time.Until(running.ends))
			pd.set(running.rollback)
		}()
	}
	return nil
}

// GetLoadBalancer returns the shared etag.
func (pd *piped) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	b, err := pd.whole.GetLoadBalancer(ctx, id)
	if len(b.Pools) > 0 {
		b.Etag = b.Pools[0].Etag
	}
	return b, err
}

// inPipedWorld sets up n pools, p1 and so on, with overlapping writes.
func inPipedWorld(t *testing.T, n int, configure func(*Config), explanation func(w *piped, pools []lb.PoolID)) {
	azure := piped{version: 100, noop: map[string]bool{}, failing: map[string]error{}}
	inWholeWorldOf(t, n, func(c *Config) {
		azure.whole = c.LoadBalancers.(*whole)
		c.LoadBalancers, c.Pipeline, c.ResyncPeriod = &azure, &azure, time.Hour
		configure(c)
	}, func(_ *whole, pools []lb.PoolID) {
		azure.readTime, azure.lanes.cfg.Azure = 10*time.Millisecond, &azure
		explanation(&azure, pools)
	})
}

// retag gives all pools a new etag. The caller holds pd.mu.
func (pd *piped) retag() string {
	pd.version++
	for _, p := range pd.pools {
		p.Etag = strconv.Itoa(pd.version)
	}
	return strconv.Itoa(pd.version)
}

// PutPool changes the shared etag.
func (pd *piped) PutPool(ctx context.Context, p lb.Pool) (lb.Pool, error) {
	shown, err := pd.whole.PutPool(ctx, p)
	if err == nil {
		pd.set(func() { shown.Etag = pd.retag() })
	}
	return shown, err
}

func (pd *piped) Begin(_ context.Context, p lb.Pool) (AcceptedWrite, error) {
	time.Sleep(pd.readTime)
	pd.mu.Lock()
	defer pd.mu.Unlock()
	name := p.ID.Name
	pd.calls = append(pd.calls, fmt.Sprintf("+%s BEGIN %s", time.Since(pd.start), name))
	stored := pd.pools[p.ID.Key()]
	if stored.Etag != p.Etag && !pd.ignoresEtags {
		return AcceptedWrite{}, armerror.Classify(armerror.Failure{Status: 412}, errors.New("etag"))
	}
	if pd.begins != nil {
		if err := pd.begins(p.ID); err != nil {
			return AcceptedWrite{}, err
		}
	}
	if err := pd.overtake(); err != nil {
		return AcceptedWrite{}, err
	}
	before := stored.Addresses
	stored.Addresses = p.Addresses
	pd.newest++
	version, begun := pd.newest, AcceptedWrite{Completed: pd.noop[name], Etag: pd.retag()}
	ends := time.Now().Add(pd.writeTime)
	pd.running = runningWrite{version, ends, func() { // another client's member is kept
		others := slices.DeleteFunc(slices.Clone(stored.Addresses), func(a lb.Address) bool { return a.Name != "vm2" || slices.Contains(before, a) })
		stored.Addresses = append(slices.Clone(before), others...)
	}}
	begun.Wait = func(ctx context.Context, looks bool) (lb.Pool, error) {
		if !looks {
			ends = ends.Add(pd.endsAfter)
		}
		select {
		case <-time.After(time.Until(ends)):
		case <-ctx.Done():
			return lb.Pool{}, ctx.Err()
		}
		pd.mu.Lock()
		defer pd.mu.Unlock()
		pd.calls = append(pd.calls, fmt.Sprintf("+%s END %s", time.Since(pd.start), name))
		switch err := pd.failing[name]; {
		case version == pd.newest:
			pd.retag()
			return *stored, err
		case err == nil && !pd.endsInOrder:
			return *stored, armerror.Classify(armerror.Failure{OperationFailed: true, Codes: []string{"Canceled", "CanceledAndSupersededDueToAnotherOperation"}}, errors.New("superseded"))
		default:
			return *stored, err
		}
	}
	if pd.accepted != nil {
		pd.accepted(p.ID)
	}
	return begun, nil
}

// sent returns the calls since the last time, without times.
func (pd *piped) sent() string {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	var names []string
	for _, c := range pd.calls {
		if f := strings.Fields(c); f[1] != "RECORD" {
			names = append(names, f[1]+" "+f[2])
		}
	}
	pd.calls = nil
	return strings.Join(names, ", ")
}

// overlap returns the state of the load balancer's worker.
func (pd *piped) overlap() schedule.Overlap { return pd.lanes.listWorkers()[0].overlap }

const (
	sentAll = "GET p1, BEGIN p1, GET p2, BEGIN p2, GET p3, BEGIN p3"
	endsOf3 = ", END p1, END p2, END p3, GET balancer"
)

func always(*Config) {}

// Until this process has seen overtaken writes persist three times, each completion is awaited;
// then only the last one.
func TestTheEndOfEachIsAwaitedUntilItIsSeenThatItStays(t *testing.T) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		w.all(pools, "n1=10.0.0.1")
		w.expect("the first time", w.sent(), sentAll+endsOf3)
		for n := 2; n <= 3; n++ {
			w.all(pools, fmt.Sprintf("n%d=10.0.0.%d", n, n))
			w.expect("once more", w.sent(), sentAll+endsOf3)
		}
		w.all(pools, "n4=10.0.0.4")
		w.expect("from then on", w.sent(), sentAll+", END p3, GET balancer")
		w.restart()
		w.all(pools, "n5=10.0.0.5")
		w.expect("another process", w.sent(), sentAll+endsOf3)
	})
}

// Drains overlap like other changes, from the first on.
func TestDrainsOverlap(t *testing.T) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		for _, id := range pools {
			w.pool(id, "n1=10.0.0.1 n8=10.0.0.8")
		}
		w.drainAll(pools, "n1=10.0.0.1 n8=10.0.0.8/Down")
		w.wait(time.Minute)
		w.expect("they leave", w.sent(), sentAll+endsOf3)
		w.drainAll(pools, "n1=10.0.0.1 n8=10.0.0.8")
		w.wait(time.Minute)
		w.expect("they return", w.sent(), sentAll+endsOf3)
	})
}

// While the ends of overtaken writes are awaited, nodes that leave are not kept waiting: pools with newer admin states are
// written together again, which covers the writes before, and cost no retry.
func TestADrainCutsTheWaitForEndsShort(t *testing.T) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		for _, id := range pools {
			w.pool(id, "n1=10.0.0.1 n8=10.0.0.8")
		}
		w.set(func() { w.endsAfter = 20 * time.Second }) // of overtaken writes
		w.drainAll(pools, "n1=10.0.0.1 n8=10.0.0.8/Down")
		w.wait(time.Second)
		w.drainAll(pools, "n1=10.0.0.1/Down n8=10.0.0.8/Down")
		w.wait(2 * time.Second)
		w.expect("three seconds later", w.sent(), sentAll+", END p3, "+sentAll)
		w.wait(time.Minute)
		for _, id := range pools {
			w.expect(id.Name, w.entries(id), "n1=10.0.0.1/Down n8=10.0.0.8/Down")
		}
		w.expectCheap(t)
	})
}

// After such a cut Azure may still roll back what was overtaken, so each pool is written again, even if it is in sync
// and has no newer admin states. Those that have some go first.
func TestAfterACutEachPoolIsWrittenAgain(t *testing.T) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		for _, id := range pools {
			w.pool(id, "n1=10.0.0.1 n8=10.0.0.8")
		}
		w.set(func() { w.endsAfter = 20 * time.Second })
		w.drainAll(pools, "n1=10.0.0.1 n8=10.0.0.8/Down")
		w.wait(time.Second)
		w.drainAll(pools[:1], "n1=10.0.0.1/Down n8=10.0.0.8/Down")
		w.wait(time.Minute)
		calls := w.sent()
		for _, id := range pools {
			if n := strings.Count(calls, "BEGIN "+id.Name) + strings.Count(calls, "PUT "+id.Name); n != 2 {
				t.Errorf("%s: %d writes: %s", id.Name, n, calls)
			}
		}
		if _, after, _ := strings.Cut(calls, "END p3, "); !strings.HasPrefix(after, "GET p1, PUT p1") {
			t.Errorf("p1 is not the first: %s", calls)
		}
		w.wait(5 * time.Minute)
		w.expect("afterwards", w.sent(), "")
		w.expectCheap(t)
	})
}

// A write that overtook nothing teaches nothing.
func TestNonOverlappingWritesProveNothing(t *testing.T) {
	for about, configure := range map[string]func(w *piped, c *Config){
		"the writes change nothing":  func(w *piped, _ *Config) { w.noop["p1"], w.noop["p2"], w.noop["p3"] = true, true, true },
		"all but the first do":       func(w *piped, _ *Config) { w.noop["p2"], w.noop["p3"] = true, true },
		"Azure heeds no etag anyway": func(_ *piped, c *Config) { c.Behaviour.PoolIfMatch = behavior.Ignored },
		"each may have ended before": func(w *piped, _ *Config) { w.ignoresEtags, w.endsInOrder = true, true },
	} {
		t.Run(about, func(t *testing.T) {
			inPipedWorld(t, 3, func(c *Config) { configure(c.Pipeline.(*piped), c) }, func(w *piped, pools []lb.PoolID) {
				before := schedule.Overlap{}
				w.all(pools, "n1=10.0.0.1")
				w.wait(time.Minute)
				if got := w.overlap(); got != before {
					t.Errorf("learned %+v", got)
				}
			})
		})
	}
}

// A write that fails at completion may have failed because of another's content: no pool is charged
// before its own attempt, and all pools of the load balancer are checked.
func TestFailureOfFinalReadHasNoService(t *testing.T) {
	inPipedWorld(t, 4, always, func(w *piped, pools []lb.PoolID) {
		w.all(pools[3:], "n9=10.0.0.9")
		w.reports = nil
		w.sent()
		w.set(func() {
			w.failing["p3"] = armerror.Classify(armerror.Failure{OperationFailed: true, Codes: []string{"InternalServerError"}}, errors.New("failed"))
		})
		w.all(pools[:3], "n1=10.0.0.1")
		w.expect("what becomes of it", w.sent(), sentAll+endsOf3+", GET p1, GET p2, GET p3, GET p4")
		w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3", "p4 Unchanged")
	})
}

// moves starts or ends another client's write of a pool. The caller holds pd.mu.
func (pd *piped) moves(id lb.PoolID, state lb.Provisioning) { pd.pools[id.Key()].Provisioning = state }

// While another client's write does not end, pools are not attempted separately for another
// interval, unless a node drains.
func TestPipelineWaitsForForeignWrite(t *testing.T) {
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
			w.refuse = func(string) *armerror.Fault {
				if times++; times != 1 {
					return nil
				}
				for _, id := range pools { // another client writes
					w.pools[id.Key()].Addresses = addresses("vm=10.9.9.9")
				}
				w.retag()
				answer := armerror.Failure{Status: 403}
				if named {
					answer = armerror.Failure{Status: 429, RetryAt: time.Now().Add(20 * time.Second)}
				}
				return armerror.Classify(answer, errors.New("refused"))
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
	return armerror.Classify(armerror.Failure{Status: 429, Codes: []string{"RetryableError", "RetryableErrorDueToAnotherOperation"}}, errors.New("locked"))
}

// refused makes Azure reject the next write of a pool. The caller holds pd.mu.
func (pd *piped) refused(pool lb.PoolID) {
	pd.begins = func(id lb.PoolID) error {
		if id != pool {
			return nil
		}
		pd.begins = nil
		return locked()
	}
}

// A rejection because another write is running counts as no attempt if that write was Weir's, and
// as a normal one otherwise.
func TestLockOwners(t *testing.T) {
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

// After a rejection each write waits for the one before. Once enough have succeeded, writes overlap again.
func TestARejectionMakesWritesSerialForAWhile(t *testing.T) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		w.set(func() { w.refused(pools[1]) })
		w.all(pools, "n1=10.0.0.1")
		w.expect("the rejection", w.sent(), "GET p1, BEGIN p1, GET p2, BEGIN p2, END p1, GET p2, PUT p2, GET p3, PUT p3")
		w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3")
		w.all(pools, "n1=10.0.0.2")
		w.expect("afterwards", w.sent(), "GET p1, PUT p1, GET p2, PUT p2, GET p3, PUT p3")
		w.all(pools, "n1=10.0.0.3")
		w.expect("two overlap again", w.sent(), "GET p1, PUT p1, GET p2, PUT p2, GET p3, PUT p3")
		w.all(pools, "n1=10.0.0.4")
		w.expect("as many as the limit", w.sent(), "GET p1, BEGIN p1, GET p2, BEGIN p2, END p1, END p2, GET balancer, GET p3, PUT p3")
		w.all(pools, "n1=10.0.0.5")
		w.expect("one more", w.sent(), sentAll+endsOf3)
	})
}

// What another client writes between the read of a pool and its write is noticed where Azure heeds etags: the write is
// rejected, and the pool is read again.
func TestAnotherClientsWriteBetweenReadAndWrite(t *testing.T) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		w.set(func() {
			w.begins = func(id lb.PoolID) error {
				if id != pools[1] {
					return nil
				}
				w.begins = nil
				w.pools[id.Key()].Addresses = addresses("vm=10.9.9.9 vm2=10.9.9.8")
				w.retag()
				return armerror.Classify(armerror.Failure{Status: 412}, errors.New("etag"))
			}
		})
		w.all(pools, "n1=10.0.0.1")
		w.expect("the calls", w.sent(), "GET p1, BEGIN p1, GET p2, BEGIN p2, GET p2, BEGIN p2, GET p3, BEGIN p3"+endsOf3)
		w.expect("the other client's member", w.entries(pools[1]), "n1=10.0.0.1 vm2=10.9.9.8 vm=10.9.9.9")
	})
}

// What another client wrote while earlier pools of a group were sent is kept, even if Azure ignores etags: each pool is read
// right before its write.
func TestAnotherClientsWriteBeforeTheReadIsKept(t *testing.T) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		w.ignoresEtags = true
		w.set(func() {
			w.accepted = func(lb.PoolID) {
				w.accepted = nil
				w.pools[pools[1].Key()].Addresses = addresses("vm=10.9.9.9 vm2=10.9.9.8")
			}
		})
		w.all(pools, "n1=10.0.0.1")
		w.expect("the calls", w.sent(), sentAll+endsOf3)
		w.expect("the other client's member", w.entries(pools[1]), "n1=10.0.0.1 vm2=10.9.9.8 vm=10.9.9.9")
	})
}

// A 412 may be caused by Weir's own write that is still running at the second read: a pool then
// found in sync was written, and its Service is notified.
func TestRunningEchoIsReported(t *testing.T) {
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
				return armerror.Classify(armerror.Failure{Status: 412, MayBeApplied: true}, errors.New("etag"))
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

// If Azure rolls back overtaken writes, all pools of the load balancer are checked.
func TestRevertedWriteResyncsAllPools(t *testing.T) {
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
		if !w.overlap().IsLimited() {
			t.Error("writes still overlap")
		}
	})
}

// Until a Retry-After of the final read has passed, changes are written separately and reported on
// completion.
func TestNoRowBeginsThatNoReadWouldEnd(t *testing.T) {
	inPipedWorld(t, 6, always, func(w *piped, pools []lb.PoolID) {
		w.refuse = func(string) *armerror.Fault {
			w.refuse = nil
			return armerror.Classify(armerror.Failure{Status: 429, RetryAt: time.Now().Add(3 * time.Minute)}, errors.New("refused"))
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
