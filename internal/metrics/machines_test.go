// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/metrics"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/nicupdate"
)

// Machines are counted by result; no label contains a machine name.
func TestMachines(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.NewMachines(reg)
	metrics.RegisterMachines(reg, func() nicupdate.Counts { return nicupdate.Counts{Working: 3, Waiting: 2} })
	m.ObserveWrite(nic.KindInterface, nil)
	m.ObserveWrite(nic.KindInterface, nil)
	m.ObserveWrite(nic.KindModel, fault.Classify(fault.Failure{Status: 412}, errors.New("overtaken")))
	m.ObserveWrite(nic.KindInstance, fault.Classify(fault.Failure{Status: 409}, errors.New("busy")))
	m.ObserveDuration(40 * time.Second)
	want := `
# HELP weir_machine_writes_total Requests that have machines join or leave pools of network interfaces, by what is written and by what came of it: written, overtaken (somebody else had written since the read) or failed.
# TYPE weir_machine_writes_total counter
weir_machine_writes_total{outcome="failed",resource="instance"} 1
weir_machine_writes_total{outcome="overtaken",resource="scale set"} 1
weir_machine_writes_total{outcome="written",resource="network interface"} 2
# HELP weir_machines Machines that are to join pools of network interfaces, or to leave them, by what becomes of them: working (written, or in turn for it), waiting (Azure is at work on it, or asked for patience) or failed.
# TYPE weir_machines gauge
weir_machines{state="failed"} 0
weir_machines{state="waiting"} 2
weir_machines{state="working"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_machine_writes_total", "weir_machines"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(reg, "weir_machine_to_pool_seconds"); n != 1 {
		t.Errorf("%d histograms", n)
	}
}
