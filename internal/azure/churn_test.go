// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// BackendPools with made-up subscriptions, groups and load balancers come and go, and Azure answers
// with quotas, locks and Retry-Afters: memory stays bounded, and the gate of the real subscription
// stays closed.
func TestClientMemoryAfterChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &fakeARM{answer: func(n int, _ *http.Request) reply {
			switch n % 3 {
			case 0:
				return slower(newReply(429, subBody), "600")
			case 1:
				return slower(newReply(429, lockBody), "600")
			}
			return slower(newReply(503, ""), "600")
		}}
		client := newClient(t, wire)
		own := lb.LoadBalancerID{SubscriptionID: "own", ResourceGroup: "rg", Name: "kubernetes"}
		client.gates.closeGate(quotaGate("own", true), closedGate{time.Now().Add(24 * time.Hour), "SubscriptionRequestsThrottled"})
		for i := range 5000 {
			id := lb.LoadBalancerID{SubscriptionID: fmt.Sprintf("%08x", i), ResourceGroup: fmt.Sprint("rg", i), Name: fmt.Sprint("lb", i)}
			_, err := client.GetPool(t.Context(), lb.PoolID{LoadBalancer: id, Name: "p"})
			if f := armerror.FromError(err); f == nil || f.RetryAt.IsZero() {
				t.Fatalf("got %v", err)
			}
			client.Enter(id)
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
		}
		g := client.gates
		if len(g.closed) > maxGates || len(g.limiters) > maxGates || len(client.retryAfters.entries) > maxRetryAfterEntries {
			t.Errorf("kept: %d gates, %d turns, %d rests", len(g.closed), len(g.limiters), len(client.retryAfters.entries))
		}
		if until, reason := client.Enter(own); until.IsZero() || reason == "" {
			t.Error("the gate of the own subscription is forgotten")
		}
	})
}
