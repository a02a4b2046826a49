// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/observe/metrics"
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
# HELP weir_contested Services and BackendPools whose resources in Azure another client keeps reverting.
# TYPE weir_contested gauge
weir_contested{kind="BackendPool"} 0
weir_contested{kind="Service"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestSerialUpdates(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.RegisterSerialUpdates(reg, func() int { return 3 })
	const want = `
# HELP weir_load_balancers_serial Load balancers where each pool write waits for the one before, because Azure rejected or discarded one that overlapped, or by azure.json.
# TYPE weir_load_balancers_serial gauge
weir_load_balancers_serial 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
