// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/observe/metrics"
)

func TestRulesAreCountedBesideTheirLimit(t *testing.T) {
	used := `
# HELP weir_load_balancer_rules Load balancing rules of each load balancer of the cluster, as Azure showed it last.
# TYPE weir_load_balancer_rules gauge
weir_load_balancer_rules{load_balancer="kubernetes"} 40
weir_load_balancer_rules{load_balancer="kubernetes-internal"} 0
`
	most := `
# HELP weir_load_balancer_rules_limit How many rules Weir gives one load balancer at most.
# TYPE weir_load_balancer_rules_limit gauge
weir_load_balancer_rules_limit 250
`
	for limit, want := range map[int]string{250: used + most, 0: used} {
		reg := prometheus.NewPedanticRegistry()
		metrics.RegisterRules(reg, func() map[string]int { return map[string]int{"kubernetes": 40, "kubernetes-internal": 0} }, limit)
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
		if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
			t.Errorf("lint: %v %v", problems, err)
		}
	}
}
