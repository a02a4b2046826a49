// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// apiEvents is a fake API server with slow requests.
type apiEvents struct {
	takes time.Duration
	fail  func(try int) error
	// refuse returns 500 for an event.
	refuse func(event *corev1.Event) bool

	mu     sync.Mutex
	tries  int
	counts map[string]int32 // by message
}

func (a *apiEvents) CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error) {
	return a.write(ctx, event)
}

func (a *apiEvents) PatchWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event, _ []byte) (*corev1.Event, error) {
	return a.write(ctx, event)
}

func (a *apiEvents) lasts() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.takes
}

func (a *apiEvents) write(ctx context.Context, event *corev1.Event) (*corev1.Event, error) {
	select {
	case <-time.After(a.lasts()):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tries++
	if a.refuse != nil && a.refuse(event) {
		return nil, apierrors.NewInternalError(errors.New("a webhook is broken"))
	}
	if a.fail != nil {
		if err := a.fail(a.tries); err != nil {
			return nil, err
		}
	}
	a.counts[event.Message] = event.Count
	return event, nil
}

func runQueue(t *testing.T, api *apiEvents, tell func(q *EventQueue)) (stopped time.Duration) {
	t.Helper()
	api.counts = map[string]int32{}
	q := NewEventQueue(scheme.Scheme, api, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { q.Run(ctx); close(ended) }()
	tell(q)
	stop()
	began := time.Now()
	<-ended
	return time.Since(began)
}

func newService(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func TestNoEventOfABurstIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiEvents{takes: time.Millisecond}
		runQueue(t, api, func(q *EventQueue) {
			for i := range 3000 {
				q.Add(newService("web"), corev1.EventTypeWarning, "R", fmt.Sprint(i))
			}
		})
		if len(api.counts) != 3000 {
			t.Errorf("%d of 3000 events arrived", len(api.counts))
		}
	})
}

// An event names its source in the fields of both APIs, which tools filter by.
func TestEventsNameTheirSource(t *testing.T) {
	var got *corev1.Event
	api := &apiEvents{refuse: func(event *corev1.Event) bool { got = event; return false }}
	runQueue(t, api, func(q *EventQueue) { q.Add(newService("web"), corev1.EventTypeNormal, "R", "one") })
	if got == nil || got.Source.Component != "weir" || got.ReportingController != "weir" {
		t.Fatalf("from %+v", got)
	}
	if of := got.InvolvedObject; of.Kind != "Service" || of.Namespace != "shop" || of.Name != "web" || got.Namespace != "shop" {
		t.Errorf("about %+v, in %s", of, got.Namespace)
	}
}

// Attempts differ in request ID and time, but are one event.
func TestAnotherTryIsTheSameEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiEvents{}
		runQueue(t, api, func(q *EventQueue) {
			for i := range 13 {
				id := fmt.Sprintf("0000000%x-0000-4000-8000-000000000000", i)
				q.Add(newService("web"), corev1.EventTypeWarning, "R", fmt.Sprintf("409 Busy: Operation with ID '%s' runs. CorrelationId: %s. Timestamp: 2026-11-27 10:00:%02dZ. Wait %d seconds (request id %s); another try follows at 2026-11-27T10:00:%02dZ", id, id, i, i, id, i))
				time.Sleep(2 * time.Second)
			}
			q.Add(newService("web"), corev1.EventTypeWarning, "R", "403 Forbidden: The client '00000001-0000-4000-8000-000000000000' may not write")
			q.Add(newService("web"), corev1.EventTypeWarning, "R", "403 Forbidden: The client '00000002-0000-4000-8000-000000000000' may not write")
		})
		const one = "409 Busy: Operation with ID '' runs. CorrelationId: . Timestamp: . Wait  seconds; another try follows"
		if len(api.counts) != 3 || api.counts[one] != 13 {
			t.Errorf("counted %v", api.counts)
		}
	})
}

func TestTheSameAgainIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiEvents{}
		runQueue(t, api, func(q *EventQueue) {
			for range 40 {
				q.Add(newService("web"), corev1.EventTypeNormal, "R", "again")
				time.Sleep(time.Second)
			}
			q.Add(newService("api"), corev1.EventTypeNormal, "R", "another's")
		})
		if api.counts["again"] != 40 || api.counts["another's"] != 1 {
			t.Errorf("counted %v", api.counts)
		}
	})
}

// Counts are correct after an outage, and the newest event comes first.
func TestEventCountsAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiEvents{fail: func(try int) error {
			if try > 1 && try < 12 {
				return errors.New("away")
			}
			return nil
		}}
		runQueue(t, api, func(q *EventQueue) {
			for range 3 {
				q.Add(newService("web"), corev1.EventTypeNormal, "R", "again")
				time.Sleep(4 * time.Second)
			}
			time.Sleep(3 * time.Minute)
		})
		if api.counts["again"] != 3 {
			t.Errorf("counted %v", api.counts)
		}
	})
}

// Queued events are written on shutdown, within a time limit.
func TestTheLastEventsAreWritten(t *testing.T) {
	for _, tt := range []struct {
		takes, within time.Duration
		wrote         int
	}{{100 * time.Millisecond, 2 * time.Second, 20}, {900 * time.Millisecond, 5 * time.Second, 5}, {time.Hour, 5 * time.Second, 0}} {
		synctest.Test(t, func(t *testing.T) {
			api := &apiEvents{takes: tt.takes}
			elapsed := runQueue(t, api, func(q *EventQueue) {
				for i := range 20 {
					q.Add(newService("web"), corev1.EventTypeNormal, "R", fmt.Sprint(i))
				}
			})
			if elapsed != tt.within || len(api.counts) != tt.wrote {
				t.Errorf("%d events were written within %s, want %d within %s", len(api.counts), elapsed, tt.wrote, tt.within)
			}
		})
	}
}

func TestAnEventWaitsForTheAPIServer(t *testing.T) {
	busy := apierrors.NewTooManyRequests("later", 1)
	for name, err := range map[string]error{"unreachable": errors.New("connection refused"), "busy": busy} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &apiEvents{fail: func(try int) error {
					if try <= 4 {
						return err
					}
					return nil
				}}
				runQueue(t, api, func(q *EventQueue) {
					q.Add(newService("web"), corev1.EventTypeNormal, "R", "one")
					q.Add(newService("web"), corev1.EventTypeNormal, "R", "two")
					time.Sleep(4 * time.Second)
				})
				if len(api.counts) != 2 {
					t.Errorf("%v arrived", api.counts)
				}
			})
		})
	}
}

func TestRejectedEventBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiEvents{fail: func(try int) error {
			if try == 1 {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", errors.New("no"))
			}
			return nil
		}}
		runQueue(t, api, func(q *EventQueue) {
			q.Add(newService("web"), corev1.EventTypeNormal, "R", "one")
			q.Add(newService("web"), corev1.EventTypeNormal, "R", "two")
			time.Sleep(time.Millisecond)
		})
		if len(api.counts) != 1 || api.tries != 2 {
			t.Errorf("%v arrived after %d tries", api.counts, api.tries)
		}
	})
}

// Failing events delay no others and are dropped after an hour.
func TestFailingEventsBlockNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, poison := &apiEvents{}, true
		api.refuse = func(event *corev1.Event) bool { return poison && strings.HasPrefix(event.Message, "poison") }
		arrived := func(message string) bool {
			api.mu.Lock()
			defer api.mu.Unlock()
			return api.counts[message] == 1
		}
		runQueue(t, api, func(q *EventQueue) {
			for i := range 20 {
				q.Add(newService("web"), corev1.EventTypeNormal, "R", fmt.Sprint("poison ", i))
			}
			for i := range 30 {
				time.Sleep(time.Minute)
				q.Add(newService("api"), corev1.EventTypeNormal, "R", fmt.Sprint(i))
				time.Sleep(2 * time.Second) // one of the pauses after a failure
				if !arrived(fmt.Sprint(i)) {
					t.Errorf("event %d waits behind those that fail: %v", i, api.counts)
					return
				}
			}
			time.Sleep(time.Hour)
			q.Add(newService("web"), corev1.EventTypeNormal, "R", "poison for a while")
			time.Sleep(time.Minute)
			api.mu.Lock()
			poison = false
			api.mu.Unlock()
			time.Sleep(time.Minute)
		})
		if !arrived("poison for a while") || arrived("poison 0") {
			t.Errorf("arrived: %v", api.counts)
		}
	})
}

func TestTheQueueOfEventsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiEvents{}
		runQueue(t, api, func(q *EventQueue) {
			q.mu.Lock()
			for range maxQueued {
				q.addWaitingLocked(queuedEvent{Event: &corev1.Event{}})
			}
			q.mu.Unlock()
			q.Add(newService("web"), corev1.EventTypeNormal, "R", "the newest")
			q.mu.Lock()
			defer q.mu.Unlock()
			if n := q.waitingCount; n > maxQueued {
				t.Errorf("%d wait", n)
			}
		})
		if api.counts["the newest"] != 1 {
			t.Error("the newest was dropped")
		}
	})
}

// Two events of one instant have two names: the API server refuses the second one of a name.
func TestTwoEventsOfOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewEventQueue(scheme.Scheme, &apiEvents{}, slog.New(slog.DiscardHandler))
		for _, message := range []string{"one", "two"} {
			q.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, corev1.EventTypeWarning, "BackendPoolKept", message)
		}
		if events := q.QueuedEvents(); len(events) != 2 || events[0].Name == events[1].Name {
			t.Errorf("their names: %v", events)
		}
	})
}

// A namespace with thousands of events delays an event of a neighbor by one, and drops only its own.
func TestEventsOfOneNamespaceDoNotDelayANeighbor(t *testing.T) {
	q := NewEventQueue(scheme.Scheme, nil, slog.New(slog.DiscardHandler))
	add := func(namespace, reason string) {
		q.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}, corev1.EventTypeNormal, reason, "text")
	}
	for i := range 5 {
		add("calm", fmt.Sprint("calm-", i))
	}
	for i := range maxQueued + 100 {
		add("busy", fmt.Sprint("busy-", i))
	}
	add("late", "late")
	var got []string
	for range 9 {
		e, _ := q.nextEvent()
		got = append(got, e.Reason)
	}
	if want := "calm-0 busy-106 late calm-1 busy-107 calm-2 busy-108 calm-3 busy-109"; strings.Join(got, " ") != want {
		t.Errorf("written: %v, want %s", got, want)
	}
}
