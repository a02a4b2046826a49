// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// beforePut runs the next function right before each write of a pool reaches Azure.
func (w *world) beforePut(happens ...func() error) {
	w.fail = func(call string, _ lb.PoolID) error {
		if call != "PUT" || len(happens) == 0 {
			return nil
		}
		next := happens[0]
		happens = happens[1:]
		return next()
	}
}

// somebodyWrites is another client's pool write: the etag changes on acceptance and on completion.
func (w *world) somebodyWrites(id lb.PoolID, members string, takes time.Duration) func() error {
	return func() error {
		p := w.pools[id.Key()]
		p.Addresses, p.Etag = addresses(members), nextEtag(p.Etag)
		if takes > 0 {
			p.Provisioning = lb.Updating
			time.AfterFunc(takes, func() {
				w.set(func() { p.Etag, p.Provisioning = nextEtag(p.Etag), lb.Succeeded })
			})
		}
		return nil
	}
}

// After one conflicting write the pool is read and written again at once, with that write's content
// and the newest desired state. It is not reported, and the record always covers what may arrive.
func TestASingle412IsLevelAfterOneAttempt(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		somebody := w.somebodyWrites(web, "vm=10.9.9.9", 0)
		w.beforePut(func() error {
			w.wanted["web"] = addresses("n2=10.0.0.2")
			return somebody()
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1]", "+250ms PUT web n1=10.0.0.1",
			"+250ms GET web", "+250ms RECORD web [10.0.0.1 10.0.0.2]", "+250ms PUT web vm=10.9.9.9 n2=10.0.0.2")
		if r := w.reports[0]; !r.HadConflict || r.RetriesUsed != 0 || r.At.Sub(w.start) > 3*time.Second {
			t.Errorf("%+v", r)
		}
		w.expectReports("web Written Updated:web")
		if got := fmt.Sprint(w.ledger["web"]); got != "[10.0.0.2]" {
			t.Errorf("the ledger holds %s", got)
		}
	})
}

// The second 412 of an attempt is a normal failure: it consumes a retry and is reported.
func TestA412ThatPersistsSpendsTheBudget(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.failing("PUT", -1, armerror.Failure{Status: 412})
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * interval)
		w.expectReports("web Retriable Retrying:web", "web Retriable Retrying:web", "web Retriable Retrying:web", "web Retriable Failed:web")
		if n := len(w.calls); n != 4*4+1 {
			t.Errorf("%d calls, want two reads and two writes in each of four attempts, and one record: %q", n, w.calls)
		}
	})
}

// Another client's write in progress changes the etag again on completion. The second write waits
// for that, up to an interval, to avoid another 412 or an overwrite.
func TestTheSecondWriteWaitsForTheOtherOne(t *testing.T) {
	for takes, reads := range map[time.Duration]int{2 * time.Second: 4, 20 * time.Second: 7, 2 * time.Minute: 7} {
		inWorld(t, 3, func(w *world) {
			w.pool(web, "")
			w.beforePut(w.somebodyWrites(web, "vm=10.9.9.9", takes), func() error {
				if under := w.pools[web.Key()].Provisioning == lb.Updating; under != (takes > interval) {
					t.Errorf("it takes %s: the second write comes while it is under way: %v", takes, under)
				}
				return nil
			})
			w.change(web, "n1=10.0.0.1")
			w.wait(interval + 3*time.Second)
			got := 0
			for _, call := range w.calls {
				if len(call) > 7 && call[len(call)-7:] == "GET web" {
					got++
				}
			}
			if got > reads {
				t.Errorf("it takes %s: %d reads, want %d at most: %q", takes, got, reads, w.calls)
			}
			if takes <= interval && len(w.reports) != 1 {
				t.Errorf("it takes %s: %d attempts: %q", takes, len(w.reports), w.calls)
			}
			w.wait(3 * time.Minute)
			w.expectPool(web, "vm=10.9.9.9 n1=10.0.0.1")
			w.expectReports("web Written Updated:web")
		})
	}
}

// A 412 may be caused by Weir's own write: a gateway timed out, the SDK sent it again, and it had
// landed. The pool is then in sync and its Service notified, even while Azure is working on it.
func TestAnEchoOfOurOwnWriteIsNoFailure(t *testing.T) {
	for _, takes := range []time.Duration{0, 3 * time.Second, 70 * time.Second} {
		for _, want := range []func(*world, lb.PoolID, string){(*world).change, (*world).look} {
			anEcho(t, takes, want)
		}
	}
}

// anEcho creates this situation by a change or a starting process.
func anEcho(t *testing.T, takes time.Duration, want func(*world, lb.PoolID, string)) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "vm=10.9.9.9")
		land := w.somebodyWrites(web, "vm=10.9.9.9 n1=10.0.0.1", takes)
		w.beforePut(func() error {
			_ = land()
			return armerror.Classify(armerror.Failure{Status: 412, MayBeApplied: true}, errors.New("etag"))
		})
		want(w, web, "n1=10.0.0.1")
		w.wait(2 * time.Minute)
		w.expectReports("web Written Updated:web")
		if lost := w.standing(web).history.Writes.PendingEtag; lost != "" {
			t.Errorf("a lost write is feared, by its etag %s", lost)
		}
		puts := 0
		for _, call := range w.calls {
			if len(call) > 20 && call[len(call)-12:] == "n1=10.0.0.1" {
				puts++
			}
		}
		if puts > 1 {
			t.Errorf("written twice: %q", w.calls)
		}
	})
}

// If another client wrote exactly the desired state, the second write is skipped silently.
func TestPoolInSyncByForeignWriteIsNotWritten(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.beforePut(w.somebodyWrites(web, "n1=10.0.0.1", 0))
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		w.expectReports("web Unchanged")
	})
}

func TestALeaseThatEndsMeanwhileMeansNoSecondWrite(t *testing.T) {
	inLeasedWorld(t, func(w *world, l *oneLease) {
		w.pool(web, "")
		somebody := w.somebodyWrites(web, "vm=10.9.9.9", 0)
		w.beforePut(func() error {
			l.set(func() { l.lost, l.holder = true, "other" })
			return somebody()
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expectReports("web Postponed")
		w.expectPool(web, "vm=10.9.9.9")
	})
}

// A pool that is no longer needed during the wait is not written.
func TestNoWriteForServiceThatWasRemoved(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.beforePut(w.somebodyWrites(web, "vm=10.9.9.9", 10*time.Second))
		w.change(web, "n1=10.0.0.1")
		w.wait(2 * time.Second)
		w.set(func() { w.gone["web"] = true })
		w.wait(time.Minute)
		w.expectPool(web, "vm=10.9.9.9")
		w.expectReports()
	})
}

// Azure rejects addresses in a pool with a network interface. The pool is read again at once: a
// pool of interfaces is left unchanged without a failure.
func TestAnInterfaceThatJoinsIsNoFailure(t *testing.T) {
	refused := armerror.Failure{Status: 400, Codes: []string{codeInterfaceMember}}
	t.Run("a pool of interfaces by now", func(t *testing.T) {
		inWorld(t, 3, func(w *world) {
			w.pool(web, "")
			w.beforePut(func() error {
				w.pools[web.Key()].NIC = true
				return armerror.Classify(refused, errors.New("refused"))
			})
			w.change(web, "n1=10.0.0.1")
			w.wait(time.Minute)
			w.expectReports("web Refused")
			w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1]", "+250ms PUT web n1=10.0.0.1", "+250ms GET web")
		})
	})
	t.Run("not to be seen yet", func(t *testing.T) {
		inWorld(t, 3, func(w *world) {
			w.pool(web, "")
			w.failing("PUT", 1, refused)
			w.change(web, "n1=10.0.0.1")
			w.wait(time.Minute)
			w.expectReports("web Retriable Retrying:web", "web Written Updated:web")
		})
	})
	t.Run("admin states of interfaces that Azure does not take", func(t *testing.T) {
		inAdminWorld(t, func(w *world) {
			w.interfaces(web, "nic-n1")
			w.failing("PUT", 1, refused)
			w.drain(web, "n1=10.0.0.1/Down")
			w.wait(500 * time.Millisecond)
			w.expectReports("web Terminal (admin) admin failed")
		})
	})
}

// A pool of a failed load balancer may be unreachable until that is rewritten. Weir rewrites it
// unchanged if it writes load balancers at all.
func TestAFailedLoadBalancerIsWrittenBeforeItsPool(t *testing.T) {
	parentFailed := armerror.Failure{Status: 400, Codes: []string{armerror.CodeParentFailed}}
	var parent failedParent
	inWorldOf(t, Config{MaxRetries: 3, LoadBalancers: &parent}, func(w *world) {
		parent.world, parent.failed = w, true
		w.pool(web, "")
		w.fail = func(call string, _ lb.PoolID) error {
			if call == "PUT" && parent.failed {
				return armerror.Classify(parentFailed, errors.New("parent"))
			}
			return nil
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1]", "+250ms PUT web n1=10.0.0.1",
			"GET balancer", "PUT balancer", "+250ms GET web", "+250ms PUT web n1=10.0.0.1")
		if w.reports[0].HadConflict {
			t.Error("nobody else wrote")
		}
		w.expectReports("web Written Updated:web")
	})
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.failing("PUT", 1, parentFailed)
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectReports("web Retriable Retrying:web", "web Written Updated:web")
	})
}

// A first write that may land is remembered if the second one fails, or is rejected with the same
// etag as guard: if the pool's current content is wanted again it is rewritten, which invalidates
// the first write.
func TestTheFateOfTheFirstWriteStaysOpen(t *testing.T) {
	next := armerror.Failure{Status: 400, Codes: []string{"NotNow"}}
	for _, code := range []string{armerror.CodeParentFailed, codeInterfaceMember} {
		for _, second := range []string{"GET", "READ LEDGER", "PUT"} {
			if code == codeInterfaceMember && second != "GET" {
				continue // a pool without interfaces is not written again
			}
			t.Run(code+", "+second, func(t *testing.T) {
				var parent failedParent
				inWorldOf(t, Config{MaxRetries: 3, LoadBalancers: &parent}, func(w *world) {
					parent.world, parent.failed = w, true
					w.pool(web, "n1=10.0.0.1 n2=10.0.0.2")
					w.ledger["web"], w.taken["web"] = sortedIPs(addresses("n1=10.0.0.1 n2=10.0.0.2")), true
					puts, fails := 0, false
					w.fail = func(call string, _ lb.PoolID) error {
						switch {
						case call == "PUT" && puts == 0:
							puts, fails = 1, true
							w.wanted["web"] = addresses("n1=10.0.0.1")
							return armerror.Classify(armerror.Failure{Status: 400, Codes: []string{code}, MayBeApplied: true}, errors.New("first"))
						case fails && call == second:
							fails = false
							return armerror.Classify(next, errors.New("second"))
						case call == "PUT":
							puts++
						}
						return nil
					}
					w.change(web, "n1=10.0.0.1")
					w.wait(time.Second)
					w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
					w.wait(2 * time.Minute)
					w.expectPool(web, "n1=10.0.0.1 n2=10.0.0.2")
					if etag := w.pools[web.Key()].Etag; etag == "1" {
						t.Errorf("the first write can land yet: %q", w.calls)
					}
				})
			})
		}
	}
}

// failedParent is a load balancer that is Failed until it is written.
type failedParent struct {
	*world
	failed bool
}

func (p *failedParent) GetLoadBalancer(_ context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "GET balancer")
	b := lb.LoadBalancer{ID: id}
	if p.failed {
		b.Provisioning = lb.Failed
	}
	return b, nil
}

func (p *failedParent) PutLoadBalancer(_ context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "PUT balancer")
	p.failed = false
	return b, nil
}
