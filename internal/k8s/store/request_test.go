// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/skumigration/phase"
)

var stop = phase.UserRequests{Stop: &phase.UserRequest{At: time.Unix(1e9, 0).UTC(), By: "jane", Reason: "not today"}}

// Other keys survive, and a concurrent write by the leader repeats the request with the new record.
func TestRequestDuringALeaderWrite(t *testing.T) {
	moved := false
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(recordHolding(map[string]string{"else": "x"})).Build(), interceptor.Funcs{
		Update: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if !moved {
				moved = true
				m := obj.DeepCopyObject().(*corev1.ConfigMap)
				m.Data = map[string]string{"else": "x", keyMigration: `{"trafficStopped":true}`}
				if err := api.Update(ctx, m); err != nil {
					return err
				}
			}
			return api.Update(ctx, obj, opts...)
		},
	})
	apart := []bool{}
	err := UpdateRequests(t.Context(), api, "weir-system", func(r Record) (phase.UserRequests, error) {
		j, err := r.MigrationJournal()
		apart = append(apart, j.TrafficStopped)
		return stop, err
	})
	r, readErr := Read(t.Context(), api, "weir-system")
	if j, _ := r.MigrationJournal(); err != nil || readErr != nil || len(apart) != 2 || !apart[1] || !j.TrafficStopped || *r.MigrationRequests().Stop != *stop.Stop || recordOf(t, api)["else"] != "x" {
		t.Errorf("%v, asked with %v: %v", err, apart, recordOf(t, api))
	}
}

// Nothing is written without a record or if ask returns an error.
func TestEmptyRequest(t *testing.T) {
	none := fake.NewClientBuilder().WithScheme(metadata.Scheme()).Build()
	if err := UpdateRequests(t.Context(), none, "weir-system", func(Record) (phase.UserRequests, error) { return stop, nil }); err == nil || !strings.Contains(err.Error(), "weir-system/weir-controller") {
		t.Errorf("without a record: %v", err)
	}
	api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(recordHolding(map[string]string{"else": "x"})).Build()
	no := errors.New("no")
	if err := UpdateRequests(t.Context(), api, "weir-system", func(Record) (phase.UserRequests, error) { return stop, no }); !errors.Is(err, no) || len(recordOf(t, api)) != 1 {
		t.Errorf("%v: %v", err, recordOf(t, api))
	}
}

// An unreadable request counts as a stop until it is replaced.
func TestUnreadableRequests(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(recordHolding(map[string]string{keyRequests: "stop!"})).Build()
	r, err := Read(t.Context(), api, "weir-system")
	if err != nil || r.MigrationRequests().Stop == nil {
		t.Fatalf("%+v, %v", r.MigrationRequests(), err)
	}
	if err := UpdateRequests(t.Context(), api, "weir-system", func(Record) (phase.UserRequests, error) { return phase.UserRequests{}, nil }); err != nil || recordOf(t, api)[keyRequests] != "" {
		t.Errorf("%v: %v", err, recordOf(t, api))
	}
}
