// SPDX-License-Identifier: Apache-2.0

package requestlog

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCallsAreServed(t *testing.T) {
	log, now := New(1<<20), time.Now()
	log.Add(Call{At: now.Add(-time.Hour), Op: "get", Resource: "/lb", Status: 200})
	log.Add(Call{At: now, Took: time.Second, Op: "put", Resource: "/lb", Status: 429, RequestID: "r1", Causes: []Cause{{Kind: "Service", Namespace: "shop", Name: "<web>"}}})
	for _, tt := range []struct {
		name, method, host, query string
		status                    int
		lines                     int
	}{
		{"all", "GET", "127.0.0.1:8082", "", 200, 2},
		{"by name", "GET", "localhost:8082", "", 200, 2},
		{"since", "GET", "[::1]:8082", "since=10m", 200, 1},
		{"a Service", "GET", "127.0.0.1", "cause=Service/shop/%3Cweb%3E", 200, 1},
		{"none", "GET", "127.0.0.1", "cause=Service/other/web&failed=true", 200, 0},
		{"a page of another owner's", "GET", "weir.example:8082", "", 403, 0},
		{"a write", "POST", "127.0.0.1", "", 405, 0},
		{"no duration", "GET", "127.0.0.1", "since=yesterday", 400, 0},
		{"no cause", "GET", "127.0.0.1", "cause=web", 400, 0},
		{"no truth", "GET", "127.0.0.1", "failed=perhaps", 400, 0},
	} {
		r := httptest.NewRequest(tt.method, CallsPath+"?"+tt.query, nil)
		r.Host = tt.host
		w := httptest.NewRecorder()
		NewHandler(log).ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code != tt.status || tt.status == http.StatusOK && strings.Count(body, "\n") != tt.lines || strings.Contains(body, "<web>") {
			t.Errorf("%s: %d, %s", tt.name, w.Code, body)
		}
	}
}

// Encoding and parsing a query returns the same filter.
func TestLawOfQueries(t *testing.T) {
	word := rapid.StringMatching(`[a-z0-9.-]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		f := Filter{Failed: rapid.Bool().Draw(t, "failed"), Resource: rapid.String().Draw(t, "resource")}
		if rapid.Bool().Draw(t, "cause") {
			f.Cause = Cause{Kind: word.Draw(t, "kind"), Namespace: rapid.SampledFrom([]string{"", "shop"}).Draw(t, "namespace"), Name: word.Draw(t, "name")}
		}
		since, now := time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "since")), time.Now()
		if since > 0 {
			f.Since = now.Add(-since)
		}
		q, err := url.ParseQuery(EncodeQuery(f, since).Encode())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseQuery(q, now); err != nil || got != f {
			t.Fatalf("%+v, %v; want %+v", got, err, f)
		}
	})
}
