// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

type streamTransport struct{ body io.Reader }

func (s streamTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(s.body)}, nil
}

// An open watch of a cache that decides no members does not hide that the other watch of its kind is broken.
func TestUntrackedWatchHidesNoBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reach := NewConnection(t.Context(), slog.New(slog.DiscardHandler))
		main, end := io.Pipe()
		other, endOther := io.Pipe()
		get := func(c *http.Client) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/api/v1/services?watch=true", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}()
		}
		get(&http.Client{Transport: &retryTransport{streamTransport{main}, reach}})
		get(UntrackedClient(&http.Client{Transport: &retryTransport{streamTransport{other}, reach}}))
		synctest.Wait()
		_ = end.Close()
		synctest.Wait()
		time.Sleep(time.Second)
		if !reach.Watches.IsStale(time.Now()) {
			t.Error("the break was not noticed")
		}
		_ = endOther.Close()
	})
}

// A resumed watch counts at once, a streaming list after its initial list.
func TestRunningWatches(t *testing.T) {
	const mark = `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}`
	for _, tt := range []struct {
		name, url, body string
		begins          bool
	}{
		{"a watch", "/api/v1/nodes?watch=true&resourceVersion=7", "{}", true},
		{"a watch of all slices", "/apis/discovery.k8s.io/v1/endpointslices?watch=1", "{}", true},
		{"a watch of one namespace", "/api/v1/namespaces/a/services?watch=true", "{}", false},
		{"a list", "/api/v1/nodes?limit=500", "{}", false},
		{"another kind", "/api/v1/events?watch=true", "{}", false},
		{"all objects first", "/api/v1/nodes?watch=true&sendInitialEvents=true", strings.Repeat(`{"type":"ADDED"}`, 100) + mark, true},
		{"all objects that do not end", "/api/v1/nodes?watch=true&sendInitialEvents=true", strings.Repeat(`{"type":"ADDED"}`, 100), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			reach := NewConnection(t.Context(), slog.New(slog.DiscardHandler))
			reach.Watches.RecordOpen("services", time.Now())
			over, end := io.Pipe()
			transport := &retryTransport{streamTransport{io.MultiReader(iotest.OneByteReader(strings.NewReader(tt.body)), over)}, reach}
			to, err := url.Parse("https://server" + tt.url)
			if err != nil {
				t.Fatal(err)
			}
			res, err := transport.RoundTrip((&http.Request{Method: http.MethodGet, URL: to}).WithContext(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				_ = res.Body.Close()
			}()
			synctest.Wait()
			if !reach.Watches.AllOpen() {
				t.Errorf("%s: broken from the start", tt.name)
			}
			_ = end.Close()
			synctest.Wait()
			time.Sleep(time.Second)
			if got := reach.Watches.IsStale(time.Now()); got != tt.begins {
				t.Errorf("%s: once it has ended what is known may be old: %v, want %v", tt.name, got, tt.begins)
			}
		})
	}
}
