// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"weir.dev/weir/lab/armemu"
)

// If the environment names a collector, each Azure request is exported as a span, including the
// last ones at shutdown; an unreachable collector delays nothing.
func TestSpansReachTheCollectorThatTheEnvironmentNames(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.pool("web")
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.service("web", n1)
	var mu sync.Mutex
	seen, name := map[string]int{}, ""
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &data)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Api-Key") != "canary-key" {
			t.Errorf("%s %v: %v", r.URL, r.Header, err)
		}
		for _, of := range data.GetResourceSpans() {
			name = fmt.Sprint(of.GetResource())
			for _, scope := range of.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					text := span.GetName()
					for _, a := range span.GetAttributes() {
						if a.GetKey() == "weir.operation" || a.GetKey() == "azure.backend_pool" {
							text += " " + a.GetValue().GetStringValue()
						}
					}
					seen[text]++
				}
			}
		}
	}))
	t.Cleanup(collector.Close)
	l.env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=canary-key"}
	weir := l.controller("--leader-elect=false")
	l.becomes("web", "10.0.0.1")
	l.expectEventCounts("web", map[string]int{updated: 1})
	l.must(weir.Signal(syscall.SIGTERM))
	l.must(weir.Wait())
	mu.Lock()
	if seen["HTTP PUT put web"] != 1 || seen["HTTP GET get web"] == 0 || !strings.Contains(name, `"weir"`) {
		t.Errorf("spans %v of %s", seen, name)
	}
	mu.Unlock()
	collector.Close()

	weir = l.controller("--leader-elect=false")
	l.move("web", n2)
	l.becomes("web", "10.0.0.2")
	l.eventually("a word about the collector", func() error {
		if n := strings.Count(weir.ReadOutput(), "spans are lost"); n != 1 {
			return fmt.Errorf("said %d times", n)
		}
		return nil
	})
	l.must(weir.Signal(syscall.SIGTERM))
	if err := weir.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if strings.Contains(weir.ReadOutput(), "canary") {
		t.Error("the log holds what the headers do")
	}
}
