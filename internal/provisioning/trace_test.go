// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"weir.dev/weir/api/v1alpha1"
)

// Each attempt is a trace with one child span per step.
func TestSpansOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &faultyTarget{fault: respondStatus(403)}
		retries := int32(1)
		w := newTestEnv(t, target, newRemote(0, nodeWaitStep, v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "1h", MaxInterval: "1h"}, true)...)
		spans := tracetest.NewSpanRecorder()
		w.room.Spans = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		key, _ := newProvision("shop", "edge-0")
		w.runWhile(func() {
			w.queueProvision(key)
			time.Sleep(30 * time.Minute)
			target.mu.Lock()
			target.fault, target.objects = nil, map[string]map[string]any{"/api/v1/nodes/a": {"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "a"}}}
			target.mu.Unlock()
			time.Sleep(time.Hour)
		})
		var got []string
		for _, s := range spans.Ended() {
			text := s.Name()
			for _, a := range s.Attributes() {
				text += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
			}
			if s.Status().Code == codes.Error {
				text += " failed"
			}
			if s.Parent().IsValid() {
				text = "  " + text
			}
			if strings.Contains(s.Status().Description, "tok-") {
				t.Errorf("a span says %s", s.Status().Description)
			}
			got = append(got, text)
		}
		want := []string{
			"  provision step weir.step=step failed",
			"provision attempt k8s.namespace.name=shop weir.provision=edge-0 weir.attempt=1 weir.result=Failed failed",
			"  provision step weir.step=step",
			"provision attempt k8s.namespace.name=shop weir.provision=edge-0 weir.attempt=2 weir.result=Succeeded",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
	})
}
