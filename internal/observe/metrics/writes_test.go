// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/ratelimit"
)

// Tenants choose subscriptions in their objects: only the cluster's own becomes a label.
func TestWriteBudget(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.RegisterWrites(reg, lb.LoadBalancerID{SubscriptionID: "Own"}, func(time.Time) []ratelimit.Usage {
		return []ratelimit.Usage{{Subscription: "a", Used: 1, Share: 500, Remaining: 99}, {Subscription: "b", Used: 400, Share: 500, Remaining: 7, Deferred: 3}, {Subscription: "own", Used: 20, Share: 500, Remaining: 80}}
	})
	want := `
# HELP weir_write_budget Writes and deletions in Microsoft.Network by subscription: spent in the last five minutes, the share of Azure's quota that Weir spends at most, and what is left of it now.
# TYPE weir_write_budget gauge
weir_write_budget{of="left",subscription="Own"} 80
weir_write_budget{of="left",subscription="other"} 7
weir_write_budget{of="share",subscription="Own"} 500
weir_write_budget{of="share",subscription="other"} 500
weir_write_budget{of="spent",subscription="Own"} 20
weir_write_budget{of="spent",subscription="other"} 400
# HELP weir_write_deferred_namespaces Namespaces that have used their share of writes by subscription: their Services wait for the next write.
# TYPE weir_write_deferred_namespaces gauge
weir_write_deferred_namespaces{subscription="Own"} 0
weir_write_deferred_namespaces{subscription="other"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
