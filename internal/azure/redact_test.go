// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azlog "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/internal/lb"
)

// The token is never printed: not in the SDK's log, errors in any format, their responses, or
// spans.
func TestTheTokenIsPrintedNowhere(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	azlog.SetListener(func(event azlog.Event, text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&log, event, text)
	})
	t.Cleanup(func() { azlog.SetListener(nil) })

	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	careless := errors.New("cannot send Authorization: Bearer " + testToken)
	for i, answers := range [][]reply{
		{accepted, working, done, shown},
		{{status: 403, body: errorBody("AuthorizationFailed", "no")}},
		{{status: 503}},
		{accepted, {status: 404}},
		{slower(reply{status: 429, body: subBody}, "5"), shown},
		{{err: careless}},
		{accepted, {err: careless}},
	} {
		if i == 5 {
			azlog.SetListener(nil) // the SDK logs transport errors
		}
		synctest.Test(t, func(t *testing.T) {
			pool := readPool(t)
			client := newClient(t, &fakeARM{answer: replySequence(answers...)}, func(o *Options) { o.TracerProvider = provider })
			logger := slog.New(slog.NewJSONHandler(&log, nil))
			for range 2 {
				_, err := client.PutPool(t.Context(), pool)
				logger.Error("put", "error", err)
				fmt.Fprintf(&log, "%v %+v %#v %q\n", err, err, err, err)
				if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
					fmt.Fprintf(&log, "%v %+v\n", answer.RawResponse.Request.Header, answer.RawResponse.Request)
				}
				_, err = client.GetPool(t.Context(), webPool)
				logger.Error("get", "error", err)
				_, err = client.AvailabilitySet(t.Context(), "azure://"+webMachine)
				logger.Error("availability set", "error", err)
				for _, w := range resourceTypes(t) {
					logger.Error("put", "error", w.write(t.Context(), client))
					if w.remove != nil {
						logger.Error("delete", "error", w.remove(t.Context(), client))
					}
				}
			}
		})
	}
	for _, span := range recorder.Ended() {
		fmt.Fprintf(&log, "%s %v %v %v\n", span.Name(), span.Attributes(), span.Status(), span.Events())
	}
	text := log.String()
	if strings.Contains(text, testToken) {
		at := strings.Index(text, testToken)
		t.Errorf("the token is printed: …%s…", text[max(0, at-300):at+len(testToken)])
	}
	for _, want := range []string{"Authorization: REDACTED", "OUTGOING REQUEST", "map[Accept:[application/json] Authorization:[REDACTED]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %q, so this test saw nothing", want)
		}
	}
	if strings.Contains(text, "t=signed") {
		t.Error("the signature of an operation's address is printed")
	}
}

func TestOneSpanARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		pool := readPool(t)
		wire := &fakeARM{answer: replySequence(accepted, reply{status: 503}, done, shown)}
		client := newClient(t, wire, func(o *Options) { o.TracerProvider = provider })
		ctx, parent := provider.Tracer("lane").Start(t.Context(), "attempt")
		if _, err := client.PutPool(ctx, pool); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, span := range recorder.Ended() {
			attributes := map[string]string{}
			for _, a := range span.Attributes() {
				attributes[string(a.Key)] = a.Value.String()
			}
			got = append(got, fmt.Sprintf("%s %s %s", span.Name(), attributes["weir.operation"], attributes["http.status_code"]))
			if span.SpanKind() != trace.SpanKindClient || span.Parent().SpanID() != parent.SpanContext().SpanID() {
				t.Errorf("%s: kind %v, parent %v", span.Name(), span.SpanKind(), span.Parent().SpanID())
			}
			if attributes["azure.load_balancer"] != webPool.LoadBalancer.String() || attributes["azure.backend_pool"] != "shop-web" {
				t.Errorf("%s does not say for which pool: %v", span.Name(), attributes)
			}
			if failed := span.Status().Code == codes.Error; failed != (attributes["http.status_code"] == "503") {
				t.Errorf("%s: status %v", span.Name(), span.Status())
			}
		}
		want := "HTTP PUT put 201, HTTP GET poll 503, HTTP GET poll 200, HTTP GET result 200"
		if strings.Join(got, ", ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
		}
	})
}

// A span has the operation and the target.
func TestSpansOfWholeResources(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	client := newClient(t, &fakeARM{answer: replySequence(reply{status: 403})}, func(o *Options) { o.TracerProvider = provider })
	_, _ = client.AvailabilitySet(t.Context(), "azure://"+webMachine)
	for _, w := range resourceTypes(t) {
		_ = w.get(t.Context(), client)
		if w.remove != nil {
			_ = w.remove(t.Context(), client)
		}
	}
	var got []string
	for _, span := range recorder.Ended() {
		var text string
		for _, a := range span.Attributes() {
			if name := string(a.Key); name == "weir.operation" || strings.HasPrefix(name, "azure.") {
				text += " " + a.Value.String()
			}
		}
		got = append(got, strings.TrimSpace(text))
	}
	want := []string{"get " + webMachine, "get " + balancer, "delete " + balancer, "get " + webIP, "delete " + webIP, "get " + groupOfNodes.String(),
		"get " + plainID(lb.TypeNetworkInterface, "n1").String(), "get " + blueSet.armPath(), "get " + blueInstance.armPath()}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
