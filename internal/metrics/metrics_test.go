// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/metrics"
)

func TestSeries(t *testing.T) {
	reg := prometheus.NewRegistry()
	arm := metrics.NewARM(reg)
	metrics.RegisterQueueDepth(reg, func() int { return 7 })
	lag := metrics.NewLag(reg)

	arm.Observe("get", 200, time.Second)
	arm.Observe("get", 200, time.Second)
	arm.Observe("put", 0, time.Second)
	lag.Observe(3 * time.Second)

	want := `
# HELP weir_arm_calls_total Requests sent to Azure Resource Manager, each retry and poll counted; status 0 is one without an answer.
# TYPE weir_arm_calls_total counter
weir_arm_calls_total{operation="get",status="200"} 2
weir_arm_calls_total{operation="put",status="0"} 1
# HELP weir_pool_operations_waiting Operations of backend pools that wait for their lane, parked ones included.
# TYPE weir_pool_operations_waiting gauge
weir_pool_operations_waiting 7
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_arm_calls_total", "weir_pool_operations_waiting"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(reg, "weir_endpoint_to_pool_seconds"); n != 1 {
		t.Errorf("%d lag histograms", n)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
