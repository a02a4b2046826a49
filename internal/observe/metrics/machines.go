// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/nic/nicupdate"
)

// Machines measures machines that join pools of network interfaces. It implements nicupdate.Metrics.
type Machines struct {
	writes *prometheus.CounterVec
	took   prometheus.Histogram
}

// NewMachines registers the metrics of machines.
func NewMachines(reg prometheus.Registerer) *Machines {
	m := &Machines{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_machine_writes_total",
			Help: "Requests that add machines to pools of network interfaces or remove them, by resource and result: written, overtaken (another client had written since the read) or failed.",
		}, []string{"resource", "outcome"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_machine_to_pool_seconds",
			Help:    "Time from when a machine was to join pools of network interfaces, or to leave them, until Azure showed it so.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 3600},
		}),
	}
	reg.MustRegister(m.writes, m.took)
	return m
}

// ObserveWrite implements nicupdate.Metrics.
func (m *Machines) ObserveWrite(kind nic.Kind, err error) {
	outcome := "written"
	switch {
	case armerror.FromError(err).IsPreconditionFailed():
		outcome = "overtaken"
	case err != nil:
		outcome = "failed"
	}
	m.writes.WithLabelValues(string(kind), outcome).Inc()
}

// ObserveDuration implements nicupdate.Metrics.
func (m *Machines) ObserveDuration(elapsed time.Duration) { m.took.Observe(elapsed.Seconds()) }

// RegisterMachines registers the gauge of machines that are out of sync.
func RegisterMachines(reg prometheus.Registerer, counts func() nicupdate.Counts) {
	reg.MustRegister(countGauge{func() map[string]int {
		c := counts()
		return map[string]int{"working": c.Working, "waiting": c.Waiting, "failed": c.Failed}
	}, prometheus.NewDesc("weir_machines",
		"Machines to be added to pools of network interfaces or removed, by state: working (written, or queued), waiting (Azure is writing it, or sent a Retry-After) or failed.", []string{"state"}, nil)})
}
