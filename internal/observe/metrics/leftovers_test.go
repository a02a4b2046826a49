// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/observe/metrics"
)

func TestOrphansAreCountedOnCollection(t *testing.T) {
	reg := prometheus.NewRegistry()
	n := 3
	metrics.RegisterLeftovers(reg, func() int { return n })
	for _, want := range []float64{3, 0} {
		n = int(want)
		families, err := reg.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "weir_leftovers" || families[0].GetMetric()[0].GetGauge().GetValue() != want {
			t.Errorf("%v %v, want %v", families, err, want)
		}
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
