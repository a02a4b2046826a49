// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// stopLeader returns the duration of the shutdown and the log.
func stopLeader(t *testing.T, api *apiEvents, lanesTake time.Duration, tell func(q *EventQueue)) (time.Duration, string) {
	t.Helper()
	var log bytes.Buffer
	api.counts = map[string]int32{}
	q := NewEventQueue(scheme.Scheme, api, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- EventRunnable{Runs: []func(context.Context){func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(lanesTake)
			tell(q)
		}}, Last: func() {}, Events: q}.Start(ctx)
	}()
	synctest.Wait()
	stop()
	began := time.Now()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return time.Since(began), log.String()
}

// Events of an attempt that ends during shutdown are written.
func TestEventsEndAfterTheLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiEvents{takes: 100 * time.Millisecond}
		elapsed, log := stopLeader(t, api, 3*time.Second, func(q *EventQueue) {
			q.Add(newService("web"), corev1.EventTypeNormal, "R", "the last word")
		})
		if api.counts["the last word"] != 1 || elapsed != 3100*time.Millisecond || log != "" {
			t.Errorf("%v was written, the stop took %s:\n%s", api.counts, elapsed, log)
		}
	})
}

// A silent API server delays the shutdown by 5 s, and lost events are counted in the log.
func TestASilentServerDoesNotHoldUpTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elapsed, log := stopLeader(t, &apiEvents{takes: time.Hour}, 3*time.Second, func(q *EventQueue) {
			for i := range 7 {
				q.Add(newService("web"), corev1.EventTypeNormal, "R", fmt.Sprint(i))
			}
		})
		if elapsed != 8*time.Second || !strings.Contains(log, "events are lost") || !strings.Contains(log, "events=7") {
			t.Errorf("the stop took %s:\n%s", elapsed, log)
		}
	})
}

// An event that cannot be written during shutdown does not affect others, on its first or a later
// attempt.
func TestAnEventThatKeepsFailingIsLostAlone(t *testing.T) {
	for name, first := range map[string]time.Duration{"new": 0, "in its pause": 8 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &apiEvents{takes: 350 * time.Millisecond, refuse: func(event *corev1.Event) bool { return event.Message == "poison" }}
				elapsed := runQueue(t, api, func(q *EventQueue) {
					q.Add(newService("web"), corev1.EventTypeNormal, "R", "poison")
					time.Sleep(first) // in a pause of 4 s
					for i := range 12 {
						q.Add(newService("api"), corev1.EventTypeNormal, "R", fmt.Sprint(i))
					}
				})
				if len(api.counts) != 12 || elapsed != stopTimeout || api.tries > 20 {
					t.Errorf("%d of 12 others were written, with %d tries in %s", len(api.counts), api.tries, elapsed)
				}
			})
		})
	}
}

// An unanswered request times out and is repeated.
func TestARequestThatIsNotAnsweredIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiEvents{takes: time.Hour}
		runQueue(t, api, func(q *EventQueue) {
			q.Add(newService("web"), corev1.EventTypeNormal, "R", "one")
			synctest.Wait()
			api.mu.Lock()
			api.takes = 0
			api.mu.Unlock()
			time.Sleep(requestTimeout + time.Second)
			synctest.Wait()
			if api.counts["one"] != 1 {
				t.Error("it still waits for the answer")
			}
		})
	})
}

// Only the leader writes events.
func TestOnlyTheLeaderWritesEvents(t *testing.T) {
	if !(EventRunnable{}).NeedLeaderElection() {
		t.Error("every process would write events")
	}
}
