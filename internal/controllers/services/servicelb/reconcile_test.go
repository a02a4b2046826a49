// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/service"
)

// served returns a Service in sync.
func served(t *testing.T, edits ...func(*Settings)) *world {
	t.Helper()
	w := newWorld(t, edits...)
	w.looks()
	w.ends()
	w.looks()
	w.log = nil
	w.counts(ConditionReady)
	return w
}

// A Service is created and deleted: its possible parts are recorded before the request and until nothing is
// left.
func TestAServiceComesAndGoes(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		w.looks()
		w.is("recorded kubernetes", "EnsuringLoadBalancer: Ensuring load balancer", "asked all for kubernetes")
		w.counts(ConditionWaiting)
		w.looks() // an event
		w.is()
		w.ends()
		w.looks()
		w.is("pools made on kubernetes", "published [198.18.0.1]", "EnsuredLoadBalancer: Ensured load balancer")
		w.counts(ConditionReady)
		w.looks()
		w.is()
		w.s.Deleting = true
		w.looks()
		w.is("DeletingLoadBalancer: Deleting load balancer", "asked to leave")
		w.counts(ConditionLeaving)
		w.ends()
		w.looks()
		w.is("recorded ", "DeletedLoadBalancer: Deleted load balancer")
		w.gone = true
		w.looks()
		w.is()
		if _, known := w.r.States.KnownUID("shop/web"); known {
			t.Error("it is gone, and still known")
		}
	})
}

// No request without a record, and a result is kept until it is persisted.
func TestUnrecordedRequestWaits(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		w.unwritable = errors.New("no API server")
		w.looks()
		w.is("error: no API server")
		w.unwritable = nil
		w.looks()
		w.is("recorded kubernetes", "EnsuringLoadBalancer: Ensuring load balancer", "asked all for kubernetes")
		w.unwritable = errors.New("no API server")
		w.ends()
		w.looks()
		w.is("pools made on kubernetes", "error: no API server")
		w.unwritable = errForbidden
		for range 2 {
			w.looks()
		}
		w.is("pools made on kubernetes", "SyncLoadBalancerFailed: Error syncing load balancer: forbidden", "error: forbidden",
			"pools made on kubernetes", "error: forbidden")
		w.counts(ConditionFailed)
		if cond := w.verdicts[TypeProgrammed]; cond.Reason != ConditionReasonFailed || cond.Text != "forbidden" {
			t.Errorf("what cannot be written down is shown as %+v", cond)
		}
		w.unwritable = nil
		w.looks()
		w.is("pools made on kubernetes", "published [198.18.0.1]", "EnsuredLoadBalancer: Ensured load balancer")
		w.counts(ConditionReady)
	})
}

// Rejections back off; a Retry-After counts, and no event shortens it.
func TestAServiceThatAzureRefusesIsTriedAgain(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		full := &armerror.Fault{Class: armerror.Terminal, Code: "SubnetIsFull", Err: errors.New("full")}
		w.answers = []error{full, full, full}
		for _, want := range []time.Duration{1, 2, 4} {
			w.looks()
			w.ends()
			if requeueAfter := w.looks(); requeueAfter != want*time.Second {
				t.Errorf("tried again after %s, want %d s", requeueAfter, want)
			}
			w.counts(ConditionFailed)
		}
		w.answers = []error{&armerror.Fault{Class: armerror.Retriable, Code: "TooManyRequests", RetryAt: time.Now().Add(time.Minute), Err: errors.New("slowly")}}
		w.looks()
		w.ends()
		if requeueAfter := w.looks(); requeueAfter != time.Minute {
			t.Errorf("Azure asked for a minute, and gets %s", requeueAfter)
		}
		w.counts(ConditionWaiting)
		time.Sleep(30 * time.Second)
		if requeueAfter := w.looks(); requeueAfter != 30*time.Second || w.asked != nil {
			t.Errorf("an event: requeued after %s, requested %v", requeueAfter, w.asked)
		}
		time.Sleep(30 * time.Second)
		w.looks()
		w.ends()
		w.looks()
		w.counts(ConditionReady)
		w.answers = []error{full}
		w.r.States.AddLostPool("shop/web", LostPool{LoadBalancer: "kubernetes", Pool: "kubernetes"})
		w.looks()
		w.ends()
		if requeueAfter := w.looks(); requeueAfter != time.Second {
			t.Errorf("after a success it waits %s", requeueAfter)
		}
	})
}

// A resync that may not be sent reports nothing and is repeated later.
func TestALookThatIsNotSentIsPutOff(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t, func(o *Settings) { o.ResyncPeriod = time.Hour })
		time.Sleep(w.looks())
		written := w.concluded
		w.answers, w.unchanged = []error{&armerror.Fault{Class: armerror.Retriable, Code: armerror.CodeGateClosed, Reason: "gate_closed", RetryAt: time.Now().Add(time.Minute), Err: errors.New("not sent")}}, true
		w.looks()
		w.ends()
		if requeueAfter := w.looks(); requeueAfter != time.Minute {
			t.Errorf("compared again after %s, want a minute", requeueAfter)
		}
		w.is("asked all for kubernetes")
		time.Sleep(time.Minute)
		w.looks()
		w.ends()
		w.looks()
		w.is("asked all for kubernetes", "pools made on kubernetes")
		w.counts(ConditionReady)
		if w.concluded != written {
			t.Errorf("its conditions are news: %+v", w.verdicts)
		}
	})
}

// An unsent rule change for a new node is reported.
func TestSkippedNodeRuleIsReported(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t, func(o *Settings) { o.HasSecurityGroup = true })
		w.s.Object.Annotations[service.DisableFloatingIP] = "true"
		w.nodes = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
		w.looks()
		w.ends()
		w.looks()
		w.nodes = append(w.nodes, netip.MustParseAddr("10.0.0.2"))
		w.answers, w.unchanged = []error{&armerror.Fault{Class: armerror.Retriable, Code: armerror.CodeGateClosed, Reason: "gate_closed", RetryAt: time.Now().Add(time.Minute), Err: errors.New("not sent")}}, true
		w.looks()
		w.ends()
		w.looks()
		if got, text := w.r.States.knownEntry("shop/web").programmedReason(w.s, class, time.Now()); got != ConditionReasonRetryAfter {
			t.Errorf("Programmed is %s: %s", got, text)
		}
	})
}

// A move by label that fails once is retried; the same spec on the old load balancer does not count as in sync.
func TestAMoveThatFailedIsTriedAgain(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t, func(o *Settings) {
			o.Configurations = []service.Configuration{{Name: "kubernetes"}, {Name: "lb-2", Services: func(on map[string]string) bool { return on["tier"] == "front" }}}
		})
		w.s.Object.Labels = map[string]string{"tier": "front"}
		w.answers = []error{&armerror.Fault{Class: armerror.Terminal, Code: "InternalServerError", Err: errors.New("not now")}}
		w.looks()
		w.ends()
		time.Sleep(w.looks())
		w.looks()
		if w.asked == nil || w.asked.On.Name != "lb-2" {
			t.Fatalf("asked for %v", w.asked)
		}
		w.ends()
		w.looks()
		w.counts(ConditionReady)
		w.looks()
		if w.asked != nil {
			t.Error("asked for what is done")
		}
	})
}

// A failed change was partly applied and is reverted: the remains are removed.
func TestAChangeThatFailedAndIsTakenBackIsUndone(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		w.s.Object.Labels = map[string]string{"tier": "front"}
		w.s.Object.Annotations = map[string]string{service.Internal: "true"}
		w.answers = []error{&armerror.Fault{Class: armerror.Terminal, Code: "InternalServerError", Err: errors.New("not now")}}
		w.looks()
		w.ends()
		requeueAfter := w.looks()
		w.s.Object.Labels, w.s.Object.Annotations = nil, nil
		time.Sleep(requeueAfter)
		w.looks()
		if w.asked == nil || w.asked.On.Name != "kubernetes" || len(w.asked.RemoveFrom) != 1 {
			t.Fatalf("asked for %+v", w.asked)
		}
	})
}

// A rule for a new node that is rejected once is retried.
func TestARuleOfNodesThatFailedIsTriedAgain(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t, func(o *Settings) { o.HasSecurityGroup = true })
		w.s.Object.Annotations[service.DisableFloatingIP] = "true"
		w.nodes = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
		w.looks()
		w.ends()
		w.looks()
		w.nodes = append(w.nodes, netip.MustParseAddr("10.0.0.2"))
		w.answers = []error{errors.New("no room for another rule")}
		w.looks()
		w.ends()
		time.Sleep(w.looks())
		w.looks()
		if w.asked == nil {
			t.Fatal("the rule is taken for written")
		}
		w.ends()
		w.looks()
		w.looks()
		if w.asked != nil {
			t.Error("asked for what is done")
		}
	})
}

// A Service deleted without its finalizer is removed after a while in which nothing else is lost. Recreated, it
// gets a load balancer again.
func TestServiceDeletedWithoutItsFinalizer(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		w.gone = true
		for w.asked == nil {
			time.Sleep(max(w.looks(), time.Second))
		}
		w.is("DeletingLoadBalancer: Deleting load balancer", "asked to leave")
		w.ends()
		w.looks()
		w.is("DeletedLoadBalancer: Deleted load balancer")
		if _, known := w.r.States.KnownUID("shop/web"); known {
			t.Error("it is still known")
		}

		w = served(t)
		w.gone = true
		w.looks() // with so few Services, one may go at once
		w.gone = false
		w.ends()
		w.looks()
		w.is("DeletingLoadBalancer: Deleting load balancer", "asked to leave", "published []", "recorded ", "DeletedLoadBalancer: Deleted load balancer",
			"recorded kubernetes", "EnsuringLoadBalancer: Ensuring load balancer", "asked all for kubernetes")
		w.ends()
		w.looks()
		w.counts(ConditionReady)
	})
}

// The Service is requested again when a pool is filled or its BackendPool is deleted, but not on every event.
func TestAServiceWaitsForItsPools(t *testing.T) {
	pool := lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}, Name: "shop-web"}
	for about, comes := range map[string]func(*world){
		"it is filled": func(w *world) {
			other := pool
			other.Name = "shop-api"
			if w.r.States.AddFilledPool("shop/web", other) || !w.r.States.AddFilledPool("shop/web", pool) {
				t.Error("waits for another pool")
			}
		},
		"its BackendPool went": func(w *world) { w.r.States.AddLostPool("shop/web", LostPool{"kubernetes", "shop-web"}) },
		"its BackendPool went, and then that of all nodes": func(w *world) {
			w.r.States.AddLostPool("shop/web", LostPool{"kubernetes", "shop-web"})
			w.r.States.AddLostPool("shop/web", LostPool{"kubernetes", "kubernetes"})
		},
		"a while has passed": func(*world) { time.Sleep(poolRetryInterval) },
	} {
		t.Run(about, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				w := newWorld(t)
				w.fills = []lb.PoolID{pool}
				w.looks()
				w.ends()
				if requeueAfter := w.looks(); requeueAfter != poolRetryInterval || w.asked != nil {
					t.Errorf("requeued after %s, requested %v", requeueAfter, w.asked)
				}
				w.looks()
				if w.asked != nil {
					t.Error("an event has it asked for again")
				}
				comes(w)
				w.looks()
				if w.asked == nil {
					t.Fatal("not asked for again")
				}
				w.fills = nil
				w.ends()
				w.looks()
				w.counts(ConditionReady)
			})
		})
	}
}

// A dry run changes nothing and reports once.
func TestADryRunAsksForNothing(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		w.s.DryRun = true
		w.looks()
		w.looks()
		w.is("DryRun: would be on kubernetes")
		if w.planned != "would be on kubernetes" {
			t.Errorf("planned %q", w.planned)
		}
		w.s.DryRun = false
		w.looks()
		w.is("recorded kubernetes", "EnsuringLoadBalancer: Ensuring load balancer", "asked all for kubernetes")
	})
}

// A rejected dry run that is fixed no longer waits.
func TestADryRunThatIsMendedIsRefusedNoMore(t *testing.T) {
	for about, refused := range map[string]func(w *world, ok bool){
		"by itself": func(w *world, ok bool) {
			if w.s.Problems = nil; ok {
				w.s.Problems = []service.Problem{{Field: "weir.dev/dry-run", Value: "maybe"}}
			}
		},
		"without room": func(w *world, ok bool) {
			if w.declines = nil; ok {
				w.declines = errors.New("no load balancer has room")
			}
		},
		"by a change without room, which is taken back": func(w *world, ok bool) {
			if w.declines, w.s.Object.Annotations = nil, nil; ok {
				w.looks()
				w.declines, w.s.Object.Annotations = errors.New("no load balancer has room"), map[string]string{service.Internal: "true"}
			}
		},
	} {
		t.Run(about, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				w := newWorld(t)
				w.s.DryRun, w.s.Object.Annotations = true, nil
				refused(w, true)
				w.looks()
				w.counts(ConditionRejected)
				refused(w, false)
				w.looks()
				w.counts(ConditionWaiting)
			})
		})
	}
}

// All load balancers are full until another Service is deleted.
func TestAServiceWithoutRoomIsTriedAgain(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		w.declines = errors.New("no load balancer has room")
		if requeueAfter := w.looks(); requeueAfter != time.Second {
			t.Errorf("tried again after %s", requeueAfter)
		}
		w.is("SyncLoadBalancerFailed: Error syncing load balancer: nothing is written yet: no load balancer has room")
		w.counts(ConditionRejected)
		w.declines = nil
		w.looks()
		if w.asked == nil {
			t.Error("there is room, and nothing is asked for")
		}
	})
}

// A shutdown during an Azure call is not reported on the Service.
func TestShutdownIsNoServiceFailure(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		w.stops, w.declines = stop, context.Canceled
		if _, err := w.r.Reconcile(ctx, "shop/web", time.Now()); err != nil {
			t.Error(err)
		}
		w.is()
	})
}

// Concurrent reconciles of a Service are serialized: the second finds the request of the first, even if a write
// takes time. Virtual time continues.
func TestOneAtATimeLooksAtAService(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		w.slow = 10 * time.Second
		began := time.Now()
		for range 2 {
			go func() {
				if _, err := w.r.Reconcile(t.Context(), "shop/web", time.Now()); err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		w.is()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		w.is("recorded kubernetes", "EnsuringLoadBalancer: Ensuring load balancer", "asked all for kubernetes")
		if elapsed := time.Since(began); elapsed != 15*time.Second {
			t.Errorf("it took %s", elapsed)
		}
	})
}

// A Service of another class retains its resources, reported once.
func TestAServiceOfAnotherClassKeepsWhatItHas(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		w.s.Finalizer, w.s.Class = true, new("weir.dev/azrue")
		w.s.Record = Record{LoadBalancers: []string{"kubernetes"}, Class: new("weir.dev/azrue")}
		w.looks()
		w.looks()
		if len(w.log) != 1 || w.asked != nil {
			t.Errorf("%v, asked %v", w.log, w.asked)
		}
		w.counts(ConditionRetained)
	})
}

// A recreated Service ignores the result of its predecessor.
func TestAResultIsThatOfOneService(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newWorld(t)
		w.looks()
		before := *w.asked
		w.asked, w.log = nil, nil
		w.s.UID, w.s.Object.UID, w.s.Record, w.s.Finalizer = "0002-0000", "0002-0000", Record{}, false
		w.looks()
		w.is("recorded kubernetes", "EnsuringLoadBalancer: Ensuring load balancer", "asked all for kubernetes")
		current := *w.asked
		w.asked = &before
		w.ends()
		w.looks()
		w.is()
		w.asked = &current
		w.ends()
		w.looks()
		w.is("pools made on kubernetes", "published [198.18.0.1]", "EnsuredLoadBalancer: Ensured load balancer")
		if uid, _ := w.r.States.KnownUID("shop/web"); uid != "0002-0000" {
			t.Errorf("known: %s", uid)
		}
	})
}

// A Service throttled without Retry-After waits longer than a rejected one.
func TestAServiceThatIsThrottledWaits(t *testing.T) {
	pace, now := ratelimit.Exponential{Initial: 5 * time.Millisecond, Max: time.Minute}, time.Now()
	var w Waiting
	if got := w.recordFailure(&armerror.Fault{Class: armerror.Terminal}, pace, now); got != 5*time.Millisecond {
		t.Errorf("refused: again after %s", got)
	}
	throttled := armerror.Classify(armerror.Failure{Status: 429}, errors.New("too many"))
	for range 12 {
		if got := w.recordFailure(throttled, pace, now); got < 10*time.Second {
			t.Errorf("throttled: again after %s", got)
		}
	}
	if got := w.recordFailure(throttled, pace, now); got != 40960*time.Millisecond {
		t.Errorf("throttled for the 13th time: again after %s", got)
	}
}
