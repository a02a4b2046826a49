// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// NewReadinessGates registers the counter of opened readiness gates, with 0 for each reason, and returns the function
// that counts one.
func NewReadinessGates(reg prometheus.Registerer, reasons []string) (count func(reason string)) {
	opened := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_readiness_gates_opened_total",
		Help: "Readiness gates of pods that this process opened, by reason.",
	}, []string{"reason"})
	for _, r := range reasons {
		opened.WithLabelValues(r)
	}
	reg.MustRegister(opened)
	return func(reason string) { opened.WithLabelValues(reason).Inc() }
}

// RegisterWaitingGates registers the number of closed gates.
func RegisterWaitingGates(reg prometheus.Registerer, count func() int) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_readiness_gates_waiting",
		Help: "Readiness gates of scheduled pods that are not open yet.",
	}, func() float64 { return float64(count()) }))
}
