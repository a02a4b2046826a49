// SPDX-License-Identifier: Apache-2.0

package services

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"weir.dev/weir/internal/service"
)

type eventTexts []string

func (e *eventTexts) Add(_ runtime.Object, kind, reason, message string) {
	*e = append(*e, kind+" "+reason+" "+message)
}

// Changed limits requeue the Services of the namespace. Invalid ones are reported once, in the log and by an
// event.
func TestBoundsOfANamespaceChange(t *testing.T) {
	team := func(label string, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"l": label}, Annotations: annotations}}
	}
	bounded := func(value string) map[string]string { return map[string]string{service.MaxRules: value} }
	for _, tt := range []struct {
		about        string
		byLabels     bool
		before, want *corev1.Namespace
		asks         bool
		reported     int
		isListed     bool // at a start, when Services have an event of their own
	}{
		{"nothing", false, team("a", bounded("5")), team("a", bounded("5")), false, 0, false},
		{"another annotation", false, team("a", nil), team("a", map[string]string{"x": "5"}), false, 0, false},
		{"a bound", false, team("a", nil), team("a", bounded("5")), true, 0, false},
		{"no bound any more", false, team("a", bounded("5")), team("a", nil), true, 0, false},
		{"a bound in error", false, team("a", bounded("5")), team("a", bounded("x")), true, 1, false},
		{"the same in error", false, team("a", bounded("x")), team("b", bounded("x")), false, 0, false},
		{"labels that do not count", false, team("a", nil), team("b", nil), false, 0, false},
		{"labels that count", true, team("a", nil), team("b", nil), true, 0, false},
		{"in error when it is first seen", false, nil, team("a", bounded("x")), true, 1, false},
		{"first seen with a grant", false, nil, team("a", map[string]string{service.PublicIPAnnotation: "ips/web"}), true, 0, false},
		{"with a grant at a start", false, nil, team("a", map[string]string{service.PublicIPAnnotation: "ips/web"}), false, 0, true},
		{"first seen without", false, nil, team("a", nil), false, 0, false},
	} {
		var events eventTexts
		var log bytes.Buffer
		r := &Reconciler{cfg: Config{Events: &events, Log: slog.New(slog.NewTextHandler(&log, nil))}}
		p, asks := r.namespaceChanged(tt.byLabels), false
		if tt.before == nil {
			asks = p.Create(event.CreateEvent{Object: tt.want, IsInInitialList: tt.isListed})
		} else {
			asks = p.Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.want})
		}
		if asks != tt.asks || len(events) != tt.reported || strings.Count(log.String(), "\n") != tt.reported {
			t.Errorf("%s: asks %v, events %q, log %s", tt.about, asks, events, &log)
		}
		for _, text := range events {
			if !strings.HasPrefix(text, `Warning InvalidBound Namespace team: annotation weir.dev/max-rules is "x"`) {
				t.Errorf("%s: %s", tt.about, text)
			}
		}
	}
}
