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
		return []metrics.LimitUsage{{Resource: "kubernetes", Limit: "rules", Ratio: 0.8}, {Resource: "nsg", Limit: "security rules"}, {Resource: "region eastus", Limit: "public IPs", Ratio: 0.9}}
	})
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP weir_limit_usage_ratio Share of a limit of Azure that a load balancer, the security group or the subscription in a region uses, as last observed.
# TYPE weir_limit_usage_ratio gauge
weir_limit_usage_ratio{limit="rules",resource="kubernetes"} 0.8
weir_limit_usage_ratio{limit="security rules",resource="nsg"} 0
weir_limit_usage_ratio{limit="public IPs",resource="region eastus"} 0.9
`)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
