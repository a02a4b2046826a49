// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// A blocked removal that resolves by itself is reported as over.
func TestEndOfBlockedRemovalIsReported(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t, func(o *Settings) { o.ResyncPeriod = time.Hour })
		w.s.StatusAddresses = lost
		for _, n := range []string{"a/1", "a/2", "a/3", "a/4", "a/5"} {
			w.r.removals.AddService(n, time.Now())
			w.r.States.byName[n] = newEntry(n, State{})
			w.r.States.byName[n].view = view{hasAddress: true, isResolved: true}
		}
		many := &manyShown{world: w}
		w.r.cfg.Cluster = many
		w.answers = []error{&loadbalancer.AddressLossError{Addresses: lost}}
		w.r.States.AddLostPool("shop/web", LostPool{"kubernetes", "kubernetes"})
		time.Sleep(2 * time.Hour)
		w.looks()
		w.ends()
		for i := 0; i < 20 && w.asked == nil; i++ {
			time.Sleep(max(w.looks(), time.Second))
		}
		w.log = nil
		if w.asked == nil {
			t.Fatal("not asked again")
		}
		res := loadbalancer.Result{Request: *w.asked, Changed: false, Addresses: lost}
		w.asked = nil
		w.r.States.AddResult(res)
		w.looks()
		if !slices.Contains(w.log, "EnsuredLoadBalancer: Ensured load balancer") {
			t.Error("people were told that it is held, and not that it is over")
		}
	})
}

// manyShown has six Services with addresses.
type manyShown struct{ *world }

func (m *manyShown) ServicesWithAddress() []string {
	return []string{"shop/web", "a/1", "a/2", "a/3", "a/4", "a/5"}
}

// rests fails if a Service is reconciled endlessly.
func rests(t *testing.T, w *world) {
	t.Helper()
	n := 0
	for range 1000 {
		requeueAfter := w.looks()
		if requeueAfter > 0 && requeueAfter <= time.Millisecond {
			n++
		}
		if requeueAfter == 0 {
			break
		}
		time.Sleep(requeueAfter)
	}
	if n > 10 {
		t.Errorf("looked at every ms, %d times", n)
	}
}

func TestARefusalWhilePoolsAreFilledRests(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		w.fills = []lb.PoolID{{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}, Name: "shop-web"}}
		w.looks()
		w.ends()
		w.looks()
		w.s.Problems = []service.Problem{{Field: "weir.dev/dry-run", Value: "maybe"}}
		w.looks()
		rests(t, w)
	})
}

func TestARefusalWhileARemovalIsHeldRests(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		w.answers = []error{&loadbalancer.AddressLossError{Addresses: lost}}
		w.s.RetryToken = "x"
		w.looks()
		w.ends()
		w.s.Problems = []service.Problem{{Field: "weir.dev/dry-run", Value: "maybe"}}
		w.looks()
		rests(t, w)
	})
}

func TestADryRunWhilePoolsAreFilledRests(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t) // ResyncPeriod: 0
		w.fills = []lb.PoolID{{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}, Name: "shop-web"}}
		w.looks()
		w.ends()
		w.looks()
		w.s.DryRun = true
		w.looks()
		rests(t, w)
	})
}

// W1 is in sync; W2 is requested and done while the Service leaves, and no request is possible; it returns with
// W1.
func TestRecreatedPoolIsNotInSync(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		w.s.Object.Annotations = map[string]string{service.Internal: "true"}
		w.looks()
		if w.asked == nil {
			t.Fatal("W2 not asked")
		}
		w.s.LoadBalancer = false // type ClusterIP
		w.declines = errors.New("not now")
		w.ends()
		w.looks()
		w.declines = nil
		w.s.LoadBalancer, w.s.Object.Annotations = true, map[string]string{}
		w.looks()
		if w.asked == nil {
			t.Error("Azure holds an internal load balancer, wanted is another one, and nothing is asked for")
		}
	})
}

// badPlan is a store that temporarily cannot persist plans.
type badPlan struct {
	*world
	fail    bool
	written int
}

func (b *badPlan) RecordPlan(context.Context, Service, string) error {
	if b.fail {
		return errors.New("no API server")
	}
	b.written++
	return nil
}

func TestAPlanThatCouldNotBeWrittenIsWrittenAgain(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		b := &badPlan{world: w, fail: true}
		w.r.cfg.Store = b
		w.s.DryRun = true
		w.looks()
		b.fail = false
		w.looks()
		if b.written == 0 {
			t.Error("what would change is never put on the BackendPools")
		}
	})
}

// A dry run in between must not reset the 30 s of a filling pool.
func TestADryRunInBetweenKeepsThePaceOfFilling(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t, func(o *Settings) { o.ResyncPeriod = 6 * time.Hour })
		w.fills = []lb.PoolID{{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}, Name: "shop-web"}}
		w.looks()
		w.ends()
		w.looks()
		w.s.DryRun = true
		w.looks()
		time.Sleep(time.Second)
		w.s.DryRun = false
		if requeueAfter := w.looks(); requeueAfter > poolRetryInterval {
			t.Errorf("next reconcile after %s, want %s", requeueAfter, poolRetryInterval)
		}
	})
}

// A change that fits no load balancer is reverted: its warning must end.
func TestWarningEndsWithItsCause(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		w.s.Object.Annotations = map[string]string{service.Internal: "true"}
		w.declines = errors.New("no room")
		time.Sleep(w.looks())
		w.s.Object.Annotations, w.declines = map[string]string{}, nil
		w.looks()
		if w.asked != nil {
			w.ends()
			w.looks()
		}
		w.counts(ConditionReady)
	})
}

// kubectl replace with a ClusterIP manifest also removes the finalizer and the record.
func TestOneReplacedByAnotherTypeLeavesNothing(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		w.s.LoadBalancer, w.s.Finalizer, w.s.Record = false, false, Record{}
		w.looks()
		if w.asked == nil {
			_, known := w.r.States.KnownUID("shop/web")
			t.Fatalf("its load balancer and public IP stay in Azure, known: %t", known)
		}
		w.ends()
		w.looks()
		w.looks()
		if _, known := w.r.States.KnownUID("shop/web"); known || w.s.Finalizer || w.s.StatusAddresses != nil {
			t.Error("still known", w.s)
		}
	})
}

// Weir's finalizer is removed from a Service being deleted that another finalizer keeps for a while.
func TestOneStrippedOfItsFinalizerWhileItGoesLeavesNothing(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		w.r.cfg.Store = &tooLate{w}
		w.s.Deleting, w.s.Finalizer = true, false
		w.looks()
		w.gone = true // the other finalizer is removed
		w.looks()
		if w.asked == nil {
			t.Fatal("its load balancer and public IP stay in Azure")
		}
		w.ends()
		w.looks()
		if _, known := w.r.States.KnownUID("shop/web"); known {
			t.Error("still known")
		}
	})
}

// tooLate is a store of a Service being deleted without the finalizer.
type tooLate struct{ *world }

func (l *tooLate) PersistRecord(ctx context.Context, s Service, r Record) error {
	if len(r.LoadBalancers) > 0 && l.s.Deleting && !l.s.Finalizer {
		return ErrServiceGone
	}
	return l.world.PersistRecord(ctx, s, r)
}

// A Service of another class without a finalizer stays unchanged.
func TestOneOfAnotherClassWithoutFinalizerStays(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		w.s.Finalizer, w.s.Class = true, new("weir.dev/azrue")
		w.s.Record = Record{LoadBalancers: []string{"kubernetes"}, Class: new("weir.dev/azrue")}
		w.looks()
		w.s.Finalizer = false
		w.looks()
		if w.asked != nil {
			t.Error("asked")
		}
	})
}

// A pool that is lost while a request runs is created again: the result may be older than the loss.
func TestPoolLostDuringARequest(t *testing.T) {
	for about, lose := range map[string]func(w *world, pool LostPool){
		"before its result": func(w *world, pool LostPool) {
			w.r.States.AddLostPool("shop/web", pool)
			w.looks()
			w.ends()
		},
		"after another pool": func(w *world, pool LostPool) {
			for n := range 1000 {
				w.r.States.AddLostPool("shop/web", LostPool{"kubernetes", fmt.Sprint(n)})
				w.looks()
			}
			w.r.States.AddLostPool("shop/web", pool)
			w.looks()
			w.ends()
		},
		"with its result": func(w *world, pool LostPool) {
			w.ends()
			w.r.States.AddLostPool("shop/web", pool)
		},
	} {
		t.Run(about, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				w := newWorld(t)
				w.looks()
				lose(w, LostPool{"kubernetes", "kubernetes"})
				w.looks()
				if w.asked == nil {
					t.Fatal("no request after the loss")
				}
				w.ends()
				w.looks()
				w.counts(ConditionReady)
				w.r.States.AddLostPool("shop/web", LostPool{"kubernetes", "another"})
				if w.looks(); w.asked != nil {
					t.Error("a request after the loss of another pool")
				}
			})
		})
	}
}

// A Service that the cache no longer has keeps its resources until the API server confirms that it was deleted.
func TestADeletionIsConfirmed(t *testing.T) {
	w := newWorld(t)
	w.looks()
	w.ends()
	w.looks()
	w.gone, w.asked = true, nil
	for _, because := range []string{"the API server has it", "the API server does not respond"} {
		if w.stale = because == "the API server has it"; !w.stale {
			w.unreadableAPI = errors.New("no response")
		}
		if second := w.looks(); w.asked != nil || second != blockedRetry {
			t.Errorf("%s: request %v, checked again in %s", because, w.asked, second)
		}
	}
	w.unreadableAPI = nil
	if w.looks(); w.asked == nil || w.asked.Desired != nil || w.asked.ProtectAddresses {
		t.Errorf("confirmed: request %+v", w.asked)
	}
}

// A Service deleted without an event had the annotation retain-address when it was last seen.
func TestARetainedAddressOfAServiceThatIsGone(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": false} {
		w := newWorld(t)
		w.s.Object.Annotations[service.RetainAddress] = value
		w.looks()
		w.ends()
		w.looks()
		w.gone, w.asked = true, nil
		if w.looks(); w.asked == nil || w.asked.Desired != nil || w.asked.Retain != want {
			t.Errorf("retain-address %q: request %+v", value, w.asked)
		}
	}
}
