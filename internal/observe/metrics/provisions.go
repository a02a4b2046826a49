// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Provisions is the state of provisioning.
type Provisions interface {
	AttemptCount(result string) uint64
	ProbeCounts() (reachable, unreachable uint64)
	StateCounts(now time.Time) (states map[string]int, oldest time.Duration)
}

// RegisterProvisions registers the metrics of provisioning.
func RegisterProvisions(reg prometheus.Registerer, of Provisions) {
	for _, result := range []string{"Succeeded", "Failed", "Invalid"} {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "weir_provision_attempts_total", Help: "Attempts to provision a cluster that have ended, by result.",
			ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(of.AttemptCount(result)) }))
	}
	for result, count := range map[string]func() uint64{
		"Answered": func() uint64 { reachable, _ := of.ProbeCounts(); return reachable },
		"Away":     func() uint64 { _, unreachable := of.ProbeCounts(); return unreachable },
	} {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "weir_provision_probes_total", Help: "Connections to targets to check whether they respond, while an attempt waits, by result.",
			ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(count()) }))
	}
	reg.MustRegister(&provisionStates{of,
		prometheus.NewDesc("weir_provisions", "Provisions by their state.", []string{"state"}, nil),
		prometheus.NewDesc("weir_provision_oldest_seconds", "Age of the oldest Provision that has not come to an end; 0 if there is none.", nil, nil)})
}

type provisionStates struct {
	of             Provisions
	states, oldest *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (p *provisionStates) Describe(to chan<- *prometheus.Desc) {
	to <- p.states
	to <- p.oldest
}

// Collect implements prometheus.Collector.
func (p *provisionStates) Collect(to chan<- prometheus.Metric) {
	states, oldest := p.of.StateCounts(time.Now())
	for _, state := range []string{"Pending", "Running", "Waiting", "Succeeded", "Failed", "Cancelled"} {
		to <- prometheus.MustNewConstMetric(p.states, prometheus.GaugeValue, float64(states[state]), state)
	}
	to <- prometheus.MustNewConstMetric(p.oldest, prometheus.GaugeValue, oldest.Seconds())
}
