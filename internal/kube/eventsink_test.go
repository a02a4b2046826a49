// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
)

// flaky is a sink that fails so often before it takes an event.
type flaky struct {
	record.EventSink

	errs  []error
	calls int
}

func (f *flaky) next(event *corev1.Event) (*corev1.Event, error) {
	f.calls++
	if len(f.errs) == 0 {
		return event, nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, err
}

func (f *flaky) Create(event *corev1.Event) (*corev1.Event, error)          { return f.next(event) }
func (f *flaky) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) { return f.next(event) }

func TestAnEventIsWrittenUntilItIsTakenOrRefused(t *testing.T) {
	events := schema.GroupResource{Resource: "events"}
	unreachable, busy, broken := errors.New("no route to host"), apierrors.NewTooManyRequestsError("busy"), apierrors.NewInternalError(errors.New("etcd"))
	for _, tt := range []struct {
		name  string
		errs  []error
		calls int
		fails bool
		after time.Duration
	}{
		{"taken", nil, 1, false, 0},
		{"taken at the second try", []error{busy}, 2, false, time.Second},
		{"no answer for long", []error{unreachable, broken, unreachable, unreachable, unreachable, unreachable}, 7, false, 35 * time.Second},
		{"it is there already", []error{apierrors.NewAlreadyExists(events, "e")}, 1, true, 0},
		{"it is malformed", []error{apierrors.NewBadRequest("no")}, 1, true, 0},
		{"its namespace is gone", []error{busy, apierrors.NewNotFound(events, "e")}, 2, true, time.Second},
		{"it is forbidden", []error{apierrors.NewForbidden(events, "e", errors.New("no"))}, 1, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, write := range []func(patientSink) (*corev1.Event, error){
					func(s patientSink) (*corev1.Event, error) { return s.Create(&corev1.Event{}) },
					func(s patientSink) (*corev1.Event, error) { return s.Patch(&corev1.Event{}, nil) },
				} {
					sink, start := &flaky{errs: tt.errs}, time.Now()
					_, err := write(patientSink{sink, t.Context()})
					if sink.calls != tt.calls || (err != nil) != tt.fails || time.Since(start) != tt.after {
						t.Errorf("%d calls in %s, %v", sink.calls, time.Since(start), err)
					}
				}
			})
		})
	}
}

func TestAnEventDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer stop()
		start, down := time.Now(), make([]error, 100)
		for i := range down {
			down[i] = errors.New("no route to host")
		}
		if _, err := (patientSink{&flaky{errs: down}, ctx}).Create(&corev1.Event{}); err == nil || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}
