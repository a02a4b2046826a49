// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/observe/metrics"
)

func TestLimits(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	metrics.RegisterLimits(reg, func() []metrics.LimitUsage {
		return []metrics.LimitUsage{{Resource: "kubernetes", Limit: "rules", Ratio: 0.8}, {Resource: "nsg", Limit: "security rules"}}
	})
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP weir_limit_usage_ratio Share of a limit of Azure that a load balancer or the security group uses, as last observed.
# TYPE weir_limit_usage_ratio gauge
weir_limit_usage_ratio{limit="rules",resource="kubernetes"} 0.8
weir_limit_usage_ratio{limit="security rules",resource="nsg"} 0
`)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
