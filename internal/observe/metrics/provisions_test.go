// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

type provisioned struct{}

func (provisioned) AttemptCount(result string) uint64 {
	return map[string]uint64{"Succeeded": 3, "Failed": 2, "Invalid": 1}[result]
}
func (provisioned) ProbeCounts() (answered, away uint64) { return 4, 5 }
func (provisioned) StateCounts(time.Time) (map[string]int, time.Duration) {
	return map[string]int{"Waiting": 7, "Running": 6}, time.Hour
}

// All series exist from the start, at 0.
func TestSeriesOfProvisioning(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	RegisterProvisions(reg, provisioned{})
	err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP weir_provision_attempts_total Attempts to provision a cluster that have ended, by result.
# TYPE weir_provision_attempts_total counter
weir_provision_attempts_total{result="Failed"} 2
weir_provision_attempts_total{result="Invalid"} 1
weir_provision_attempts_total{result="Succeeded"} 3
# HELP weir_provision_probes_total Connections to targets to check whether they respond, while an attempt waits, by result.
# TYPE weir_provision_probes_total counter
weir_provision_probes_total{result="Answered"} 4
weir_provision_probes_total{result="Away"} 5
# HELP weir_provision_oldest_seconds Age of the oldest Provision that has not come to an end; 0 if there is none.
# TYPE weir_provision_oldest_seconds gauge
weir_provision_oldest_seconds 3600
# HELP weir_provisions Provisions by their state.
# TYPE weir_provisions gauge
weir_provisions{state="Cancelled"} 0
weir_provisions{state="Failed"} 0
weir_provisions{state="Pending"} 0
weir_provisions{state="Running"} 6
weir_provisions{state="Succeeded"} 0
weir_provisions{state="Waiting"} 7
`))
	if err != nil {
		t.Error(err)
	}
}
