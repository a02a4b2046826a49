// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

// collector decodes the spans that it receives.
type collector struct {
	*testing.T
	*httptest.Server

	mu      sync.Mutex
	heads   []http.Header
	paths   []string
	bodies  []*tracepb.TracesData
	answers func(w http.ResponseWriter, r *http.Request) // nil means 200
}

func newCollector(t *testing.T) *collector {
	c := &collector{T: t}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// ServeHTTP implements http.Handler.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			c.Error(err)
			return
		}
		from = z
	}
	raw, err := io.ReadAll(from)
	var body tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(raw, &body)
	}
	if err != nil {
		c.Errorf("%s: %v", r.URL, err)
	}
	c.mu.Lock()
	c.heads, c.paths, c.bodies = append(c.heads, r.Header.Clone()), append(c.paths, r.Method+" "+r.URL.Path), append(c.bodies, &body)
	answers := c.answers
	c.mu.Unlock()
	if answers != nil {
		answers(w, r)
	}
}

func (c *collector) answer(f func(w http.ResponseWriter, r *http.Request)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = f
}

// spelled formats attributes in order.
func spelled(values []*commonpb.KeyValue) string {
	var out []string
	for _, kv := range values {
		if !strings.HasPrefix(kv.GetKey(), "telemetry.") {
			out = append(out, fmt.Sprintf("%s=%v", kv.GetKey(), kv.GetValue().GetStringValue()))
		}
	}
	return strings.Join(out, " ")
}

// logged is a log that can be read concurrently.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String implements fmt.Stringer.
func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// started calls Start with these variables.
func started(t *testing.T, env map[string]string) (*Tracing, *logged) {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60000") // a busy machine needs longer than the default of 10 s
	for name, value := range env {
		t.Setenv(name, value)
	}
	log := &logged{}
	return Start(t.Context(), "weir", "v1.2.3", slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))), log
}

func (t *Tracing) span(name string, attributes ...attribute.KeyValue) {
	_, span := t.Provider.Tracer("test").Start(context.Background(), name, trace.WithAttributes(attributes...))
	span.End()
}

func (t *Tracing) flush(test *testing.T) {
	test.Helper()
	if err := t.Provider.(*sdktrace.TracerProvider).ForceFlush(test.Context()); err != nil {
		test.Error(err)
	}
}

func TestWithoutACollectorThereIsNothing(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"nothing is set":     {},
		"only the port":      {"OTEL_SERVICE_NAME": "x"},
		"all is turned off":  {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"traces are not due": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			tracing, log := started(t, env)
			if tracing.Provider != nil || log.String() != "" {
				t.Errorf("provides %v, and logs %s", tracing.Provider, log)
			}
			tracing.Shutdown(time.Second)
			goleak.VerifyNone(t, before)
		})
	}
}

// The collector receives the spans and the program's identity; the rest is flushed at the end.
func TestSpansReachTheCollector(t *testing.T) {
	c := newCollector(t)
	for _, tt := range []struct {
		name       string
		env        map[string]string
		path, user string
	}{
		{"of all signals", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}, "POST /v1/traces", "service.name=weir service.version=v1.2.3"},
		{"of traces", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": c.URL + "/mine", "OTEL_SERVICE_NAME": "weir-east", "OTEL_RESOURCE_ATTRIBUTES": "zone=1", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
			"POST /mine", "service.name=weir-east service.version=v1.2.3 zone=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=canary%2Cone")
			tracing, log := started(t, tt.env)
			tracing.span("HTTP GET", attribute.String("weir.operation", "get"), attribute.String("long", strings.Repeat("x", 5000)))
			tracing.Shutdown(5 * time.Minute)
			c.mu.Lock()
			defer c.mu.Unlock()
			last := len(c.bodies) - 1
			if last < 0 || c.paths[last] != tt.path || c.heads[last].Get("Api-Key") != "canary,one" || c.heads[last].Get("Content-Type") != "application/x-protobuf" {
				t.Fatalf("%v %v\n%s", c.paths, c.heads, log)
			}
			of := c.bodies[last].GetResourceSpans()[0]
			if got := spelled(of.GetResource().GetAttributes()); got != tt.user {
				t.Errorf("sent by %s, want %s", got, tt.user)
			}
			span := of.GetScopeSpans()[0].GetSpans()[0]
			if got := spelled(span.GetAttributes()); span.GetName() != "HTTP GET" || got != "weir.operation=get long="+strings.Repeat("x", maxValueLength) {
				t.Errorf("%s %s", span.GetName(), got)
			}
			if strings.Contains(log.String(), "canary") || strings.Contains(log.String(), "level=WARN") {
				t.Error(log)
			}
			c.CloseClientConnections()
			goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
		})
	}
}

// A rejecting collector is logged once, without header values, and once after recovery.
func TestRejectingCollectorIsLoggedOnce(t *testing.T) {
	c := newCollector(t)
	c.answer(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, "no such token: %s\n%s", r.Header.Get("Authorization"), strings.Repeat("long ", 1000))
	})
	tracing, log := started(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": strings.Replace(c.URL, "//", "//user:canary-3@", 1), "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20canary-1,x=canary-2",
	})
	for range 5 {
		tracing.span("lost")
		tracing.flush(t)
	}
	c.answer(nil)
	tracing.span("found")
	tracing.flush(t)
	tracing.Shutdown(time.Second)
	text := log.String()
	if n := strings.Count(text, "spans are lost"); n != 1 {
		t.Errorf("told %d times", n)
	}
	if !strings.Contains(text, "401 Unauthorized") || !strings.Contains(text, `msg="spans are delivered again" lost=5`) || len(text) > 1500 {
		t.Errorf("%d bytes", len(text))
	}
	if strings.Contains(text, "canary") || t.Failed() {
		t.Error(text)
	}
}

// The path may contain a token: it is never logged, not even if the collector returns it.
func TestThePathOfTheCollectorIsNotLogged(t *testing.T) {
	c := newCollector(t)
	c.answer(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "nobody knows %s, or %s", r.URL.EscapedPath(), r.URL.Path)
	})
	for name, tt := range map[string]struct{ variable, url, wantText string }{
		"of all signals":  {"OTEL_EXPORTER_OTLP_ENDPOINT", c.URL + "/in/canary-1%2B", "403"},
		"of traces":       {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL + "/canary-2?key=canary-3", "403"},
		"nobody is there": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/canary-4/v1/traces", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			tracing, log := started(t, map[string]string{tt.variable: tt.url})
			tracing.span("lost")
			tracing.flush(t)
			tracing.Shutdown(time.Second)
			if text := log.String(); strings.Contains(text, "canary") || !strings.Contains(text, "127.0.0.1:") || !strings.Contains(text, tt.wantText) {
				t.Error(text)
			}
		})
	}
}

// Transient errors are retried at the collector's pace; permanent ones are not.
func TestABatchIsSentThriceAtMost(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		after  string
		times  int
		want   int
	}{
		{"it passes", 503, "0", 1, 2},
		{"it lasts", 503, "0", 9, 3},
		{"it is refused", 400, "", 9, 1},
		{"it takes too long", 429, "60", 9, 1},
		{"it lies elsewhere", 307, "", 9, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, remaining := newCollector(t), tt.times
			c.answer(func(w http.ResponseWriter, _ *http.Request) {
				c.mu.Lock()
				defer c.mu.Unlock()
				if remaining--; remaining >= 0 {
					w.Header().Set("Retry-After", tt.after)
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(tt.status)
				}
			})
			to, err := environment(func(name string) string {
				return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}[name]
			}).newClient()
			if err != nil {
				t.Fatal(err)
			}
			err = to.UploadTraces(t.Context(), []*tracepb.ResourceSpans{{SchemaUrl: "x"}})
			if (err == nil) != (tt.times < tt.want) {
				t.Error(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.paths) != tt.want {
				t.Errorf("sent %d times: %v", len(c.paths), c.paths)
			}
		})
	}
}

// An unresponsive collector blocks neither spans nor shutdown.
func TestSilentCollectorDelaysNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c := newCollector(t)
	over := make(chan struct{})
	c.answer(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	tracing, log := started(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL})
	begin := time.Now()
	for range 20_000 {
		tracing.span("many")
	}
	made := time.Since(begin)
	tracing.Shutdown(100 * time.Millisecond)
	if ended := time.Since(begin) - made; made > 40*time.Second || ended > 40*time.Second {
		t.Errorf("20,000 spans took %s, and the end %s", made, ended)
	}
	close(over)
	c.Close()
	goleak.VerifyNone(t, before)
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "the controller stops") {
		t.Error(text)
	}
}

// Configuration errors are logged without values and disable tracing.
func TestInvalidEnvironmentIsLoggedWithoutSecrets(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"want a URL":            {"OTEL_EXPORTER_OTLP_ENDPOINT": "//canary:canary@\x7f"},
		"OTEL_EXPORTER_OTLP_EN": {"OTEL_EXPORTER_OTLP_ENDPOINT": "grpc://canary:4317"},
		"want http/protobuf":    {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		"want otlp":             {"OTEL_TRACES_EXPORTER": "zipkin"},
		"entry 2 is not":        {"OTEL_EXPORTER_OTLP_HEADERS": "a=b,Bearer canary"},
		"entry 1 is not":        {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=canary%2"},
		"want gzip":             {"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"},
		"want milliseconds":     {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "10s"},
		"entry 1 is not ":       {"OTEL_EXPORTER_OTLP_HEADERS": "a=canary%0d%0ab"},
		"_CERTIFICATE":          {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"},
		"_CLIENT_KEY":           {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			tracing, log := started(t, env)
			text := log.String()
			if tracing.Provider != nil || !strings.Contains(text, "no spans are sent") || !strings.Contains(text, name) || strings.Contains(text, "canary") {
				t.Errorf("provides %v, and logs %s", tracing.Provider, text)
			}
			tracing.Shutdown(time.Second)
		})
	}
}
