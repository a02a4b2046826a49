// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

const (
	// eventsStopWithin bounds how long the last events may take when the controller stops.
	eventsStopWithin = 5 * time.Second
	// eventsQuiet is how long no event has to be written until none is taken to wait: the
	// recorder writes one after the other and does not say when it is through.
	eventsQuiet = 200 * time.Millisecond
)

// watchedSink knows whether events are being written.
type watchedSink struct {
	record.EventSink

	mu      sync.Mutex // guards all below
	writing int
	last    time.Time // when a write began or ended
}

// Create implements record.EventSink.
func (s *watchedSink) Create(event *corev1.Event) (*corev1.Event, error) {
	defer s.watch()()
	return s.EventSink.Create(event)
}

// Update implements record.EventSink.
func (s *watchedSink) Update(event *corev1.Event) (*corev1.Event, error) {
	defer s.watch()()
	return s.EventSink.Update(event)
}

// Patch implements record.EventSink.
func (s *watchedSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	defer s.watch()()
	return s.EventSink.Patch(event, data)
}

func (s *watchedSink) watch() (ended func()) {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.writing += n
		s.last = time.Now()
	}
	count(1)
	return func() { count(-1) }
}

// rest waits until nothing was written for a moment, or as long as it may.
func (s *watchedSink) rest(within time.Duration) {
	began := time.Now()
	for end := began.Add(within); time.Now().Before(end); time.Sleep(eventsQuiet / 10) {
		s.mu.Lock()
		quiet := s.writing == 0 && time.Since(later(began, s.last)) >= eventsQuiet
		s.mu.Unlock()
		if quiet {
			return
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
