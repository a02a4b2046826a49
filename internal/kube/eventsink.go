// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"

	"weir.dev/weir/internal/backoff"
)

// eventPause is how long an event waits that the API server did not take.
var eventPause = backoff.Doubling{First: time.Second, Max: 10 * time.Second}

// patientSink writes an event until the API server has taken or refused it. What it
// stands before gives an event up after two minutes without an answer, and at the
// first 429 or 5xx that client-go did not ask again, so that a server which is busy or
// restarts would cost users a word that they were promised. Events wait in their order;
// beyond a thousand that wait, new ones are dropped.
type patientSink struct {
	record.EventSink

	ctx context.Context
}

// Create implements record.EventSink. Once more after a lost answer, it meets
// AlreadyExists, which is final.
func (s patientSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.insist(func() (*corev1.Event, error) { return s.EventSink.Create(event) })
}

// Patch implements record.EventSink. It says how often an event occurred, not that it
// occurred once more, so a second one does no harm.
func (s patientSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.insist(func() (*corev1.Event, error) { return s.EventSink.Patch(event, data) })
}

func (s patientSink) insist(write func() (*corev1.Event, error)) (*corev1.Event, error) {
	for failures := 1; ; failures++ {
		event, err := write()
		if err == nil || !passes(err) {
			return event, err
		}
		wait := time.NewTimer(eventPause.After(failures))
		select {
		case <-wait.C:
		case <-s.ctx.Done():
			wait.Stop()
			return event, err
		}
	}
}

// passes reports whether an error of the API server may pass by itself: no answer, a
// server that is busy, and one that is broken.
func passes(err error) bool {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	if !answered {
		return true
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
