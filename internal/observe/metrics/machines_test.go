// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/nic/nicupdate"
	"weir.dev/weir/internal/observe/metrics"
)

// Machines are counted by result; no label contains a machine name.
func TestMachines(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.NewMachines(reg)
	metrics.RegisterMachines(reg, func() nicupdate.Counts { return nicupdate.Counts{Working: 3, Waiting: 2} })
	m.ObserveWrite(nic.KindInterface, nil)
	m.ObserveWrite(nic.KindInterface, nil)
	m.ObserveWrite(nic.KindModel, armerror.Classify(armerror.Failure{Status: 412}, errors.New("overtaken")))
	m.ObserveWrite(nic.KindInstance, armerror.Classify(armerror.Failure{Status: 409}, errors.New("busy")))
	m.ObserveDuration(40 * time.Second)
	want := `
# HELP weir_machine_writes_total Requests that add machines to pools of network interfaces or remove them, by resource and result: written, overtaken (another client had written since the read) or failed.
# TYPE weir_machine_writes_total counter
weir_machine_writes_total{outcome="failed",resource="instance"} 1
weir_machine_writes_total{outcome="overtaken",resource="scale set"} 1
weir_machine_writes_total{outcome="written",resource="network interface"} 2
# HELP weir_machines Machines to be added to pools of network interfaces or removed, by state: working (written, or queued), waiting (Azure is writing it, or sent a Retry-After) or failed.
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
