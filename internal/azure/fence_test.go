// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"weir.dev/weir/internal/leader"
)

// The error of a write that fails after leadership was lost includes leader.ErrNotLeader; the error
// of a read does not.
func TestAWriteThatFailsAfterTheLead(t *testing.T) {
	lost := errors.New("use of closed network connection")
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, lost }
	for _, tt := range []struct {
		method string
		now    time.Duration
		named  bool
	}{
		{http.MethodPut, 0, false}, {http.MethodPut, 20 * time.Second, true},
		{http.MethodDelete, 20 * time.Second, true}, {http.MethodGet, 20 * time.Second, false},
	} {
		leads := leader.NewFence(10*time.Second, func() time.Duration { return tt.now })
		leads.RecordRenew(leader.Epoch{Lease: "weir-system/weir-controller"}, 0)
		req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://127.0.0.1:1", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = newFencedTransport(&http.Transport{DialContext: dial}, &http.Transport{DialContext: dial}, leads).RoundTrip(req)
		if !errors.Is(err, lost) || errors.Is(err, leader.ErrNotLeader) != tt.named {
			t.Errorf("%s after %s: %v", tt.method, tt.now, err)
		}
	}
}
