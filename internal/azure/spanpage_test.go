// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"weir.dev/weir/test/referencepage"
)

// attributeMeans describes the span attributes, for the reference.
var attributeMeans = map[string]string{
	"weir.operation":            "what the request is for: `get`, `list`, `put`, `delete`, `poll` (the state of an accepted write) or `result` (what Azure shows after it)",
	"azure.load_balancer":       "ARM id of the load balancer, for requests about one or a pool of one",
	"azure.backend_pool":        "name of the pool, for requests about one",
	"azure.resource":            "ARM id of any other resource; of a list, that of its resource group",
	"http.method":               "`GET`, `PUT` or `DELETE`",
	"http.url":                  "where it went; of the query only what is no signature",
	"http.status_code":          "of the answer; absent if none came",
	"http.user_agent":           "Weir and the SDK, with their versions",
	"net.peer.name":             "host of Azure Resource Manager",
	"az.correlation_request_id": "the `x-ms-correlation-request-id` of the answer: what a request led to has the same in Azure's activity log",
	"az.service_request_id":     "the `x-ms-request-id` of the answer: what Azure's support asks for",
}

// The reference lists all spans and attributes.
func TestReferenceListsTheSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		traced := func(o *Options) { o.TracerProvider = provider }
		named := func(r reply) reply {
			r.header = maps.Clone(r.header)
			r.header["X-Ms-Request-Id"], r.header["X-Ms-Correlation-Request-Id"] = "r1", "c1"
			return r
		}
		pool := readPool(t)
		if _, err := newClient(t, &fakeARM{answer: replySequence(named(accepted), done, shown)}, traced).PutPool(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		client := newClient(t, &fakeARM{answer: replySequence(reply{status: 403})}, traced)
		_, _ = client.GetPool(t.Context(), webPool)
		for _, w := range resourceTypes(t) {
			_ = w.get(t.Context(), client)
			if w.remove != nil {
				_ = w.remove(t.Context(), client)
			}
		}
		referencepage.ExpectSection(t, "../../docs/reference/tracing.md", "spans", spanTable(t, recorder.Ended()))
	})
}

func spanTable(t *testing.T, spans []sdktrace.ReadOnlySpan) string {
	t.Helper()
	names, attributes := map[string]bool{}, map[string]bool{}
	for _, span := range spans {
		names["`"+span.Name()+"`"] = true
		for _, a := range span.Attributes() {
			attributes[string(a.Key)] = true
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Names: %s.\n\n| attribute | meaning |\n|---|---|\n", strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		if attributeMeans[key] == "" {
			t.Errorf("nothing says what %s means", key)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", key, attributeMeans[key])
	}
	for key := range attributeMeans {
		if !attributes[key] {
			t.Errorf("no span has %s", key)
		}
	}
	return b.String()
}
