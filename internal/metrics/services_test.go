// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/metrics"
)

func TestServicesByState(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.RegisterServices(reg, func() map[string]int { return map[string]int{"ready": 2, "failed": 0} })
	const want = `
# HELP weir_services Services that have a load balancer of Weir's, or are to have one, by how far it is.
# TYPE weir_services gauge
weir_services{state="failed"} 0
weir_services{state="ready"} 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestContested(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.RegisterConflicts(reg, func() map[string]int { return map[string]int{"Service": 1, "BackendPool": 0} })
	const want = `
# HELP weir_contested Services and BackendPools of which somebody else keeps undoing in Azure what Weir writes.
# TYPE weir_contested gauge
weir_contested{kind="BackendPool"} 0
weir_contested{kind="Service"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestWholeWrites(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.RegisterBatchUpdates(reg, func() map[[2]string]int {
		return map[[2]string]int{{"addresses", "taken"}: 1, {"addresses", "unknown"}: 2, {"admin_states", "unknown"}: 3}
	})
	const want = `
# HELP weir_whole_writes Subscriptions by what Azure does there with such changes of pools in a write of their load balancer: taken, ignored or unknown; and with writes of pools that overlap: supersede, supersede-discard, supersede-discard-late, lock-429, conflict-409, mixed or unknown; on and off are by azure.json.
# TYPE weir_whole_writes gauge
weir_whole_writes{changes="addresses",verdict="taken"} 1
weir_whole_writes{changes="addresses",verdict="unknown"} 2
weir_whole_writes{changes="admin_states",verdict="unknown"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
