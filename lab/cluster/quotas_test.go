// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/lab/armemu"
)

// The leader alone reads the quotas of the region, hourly, and its metrics show them.
func TestQuotasOfTheRegion(t *testing.T) {
	runStage(t, Options{Replicas: 2}, func(s *Stage) {
		s.Start()
		s.Sleep(4*time.Hour + 30*time.Minute)
		reads := s.emulator.Calls(func(c armemu.Call) bool { return strings.HasSuffix(c.Path, "/usages") })
		if len(reads) != 5 {
			t.Errorf("%d reads in 4.5 hours", len(reads))
		}
		for n, r := range s.replicas {
			if isShown := hasQuotas(t, r.process.Load().metrics); isShown != (n == s.leader()) {
				t.Errorf("replica %d shows quotas: %t", n, isShown)
			}
		}
	})
}

func hasQuotas(t *testing.T, from prometheus.Gatherer) bool {
	families, err := from.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "weir_limit_usage_ratio" && strings.HasPrefix(l.GetValue(), "region ") {
					return true
				}
			}
		}
	}
	return false
}
