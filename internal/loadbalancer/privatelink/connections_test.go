// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// connected returns a deleted Service whose Private Link Service has n connections. connect adds
// more.
func connected(t *testing.T, n int) (w *town, clears func() time.Duration, connect func(first, n int)) {
	t.Helper()
	w = newTown(1)
	w.inSync(t)
	key := slices.Collect(maps.Keys(w.links))[0]
	connect = func(first, n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		p := w.links[key]
		for i := range n {
			p.Connections = append(slices.Clone(p.Connections), lb.PrivateEndpointConnection{Name: fmt.Sprintf("c%03d", first+i)})
		}
		w.links[key] = p
	}
	connect(0, n)
	r := w.requests[0]
	r.Desired = nil
	return w, func() time.Duration {
		began := time.Now()
		clear(w.calls)
		w.keeper.RemovePublishers(t.Context(), map[string][]*Request{FrontendID(kubernetes, "a000"): {r}}, w.requests)
		return time.Since(began)
	}, connect
}

// A round removes two connections and reports that more remain; after the last one the Private Link
// Service is deleted.
func TestConnectionsGoInSeveralRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, clears, _ := connected(t, 5)
		r := w.requests[0]
		for remaining := range 2 {
			if elapsed := clears(); elapsed != 20*time.Second || !r.HasMore || r.Err != nil {
				t.Errorf("round %d takes %v, more: %t, %v", remaining, elapsed, r.HasMore, r.Err)
			}
			wants(t, "a round that ends early", w.calls, map[string]int{"list rg": 1, "disconnect": 2, "get": 2})
		}
		clears()
		wants(t, "the last round", w.calls, map[string]int{"list rg": 1, "disconnect": 1, "get": 1, "delete": 1})
		if r.HasMore || r.Err != nil || len(w.links) > 0 {
			t.Errorf("more: %t, %v, %d are left", r.HasMore, r.Err, len(w.links))
		}
		removed := 0
		for _, e := range r.Events {
			if e.Reason == ReasonDisconnected {
				removed++
			}
		}
		if removed != 5 {
			t.Errorf("%d removals are told, want 5", removed)
		}
	})
}

// Connections added as fast as they are removed are removed with backoff.
func TestConnectionsThatBecomeNoFewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, clears, connect := connected(t, 5)
		r := w.requests[0]
		clears()
		connect(5, 2)
		clears()
		f := armerror.FromError(r.Err)
		if f == nil || f.Code != CodeUpdating || r.HasMore || !strings.Contains(f.Error(), "has 3 connections yet") {
			t.Fatalf("more: %t, %v", r.HasMore, r.Err)
		}
		if !f.RetryAt.After(time.Now()) {
			t.Errorf("it comes again at %v", f.RetryAt)
		}
	})
}
