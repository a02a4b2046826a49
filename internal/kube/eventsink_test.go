// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// slowSink takes a while for each event.
type slowSink struct {
	record.EventSink
	mu    sync.Mutex
	wrote []string
	takes time.Duration
}

func (s *slowSink) Create(event *corev1.Event) (*corev1.Event, error) {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = append(s.wrote, event.Message)
	return event, nil
}

// Events that wait when the controller stops are written, unless that takes too long.
func TestTheLastEventsAreWritten(t *testing.T) {
	for _, tt := range []struct {
		takes time.Duration
		wrote int
		until time.Duration
	}{{100 * time.Millisecond, 20, 2*time.Second + eventsQuiet}, {900 * time.Millisecond, 5, eventsStopWithin}} {
		t.Run(tt.takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &slowSink{takes: tt.takes}
				e := newEvents(Scheme(), sink)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { _ = e.Start(ctx); close(ended) }()
				synctest.Wait()
				for i := range 20 {
					e.recorder.Event(&corev1.Service{}, corev1.EventTypeNormal, "R", fmt.Sprint(i))
				}
				stop()
				began := time.Now()
				<-ended
				took := time.Since(began)
				sink.mu.Lock()
				wrote := len(sink.wrote)
				sink.mu.Unlock()
				if wrote != tt.wrote || took < tt.until || took > tt.until+eventsQuiet {
					t.Errorf("%d events were written within %s", wrote, took)
				}
				time.Sleep(time.Minute) // for the one under way
			})
		})
	}
}
