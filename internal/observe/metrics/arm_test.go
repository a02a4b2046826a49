// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/requestlog"
)

func TestCallsAreCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	arm := metrics.NewARMRequests(reg)
	arm.ObserveRequest(requestlog.Call{Op: "get", Status: 200, Took: time.Second})
	arm.ObserveRequest(requestlog.Call{Op: "get", Status: 200, Took: time.Second})
	arm.ObserveRequest(requestlog.Call{Op: "put", Status: 0, Took: time.Second})
	want := `
# HELP weir_arm_calls_total Requests sent to Azure Resource Manager, each retry and poll counted; status 0 is one without a response.
# TYPE weir_arm_calls_total counter
weir_arm_calls_total{operation="get",status="200"} 2
weir_arm_calls_total{operation="put",status="0"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_arm_calls_total"); err != nil {
		t.Error(err)
	}
}
