// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the Prometheus series of Weir. Names and labels are a
// contract with dashboards; they are listed in docs/reference/metrics.md.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ARM counts the requests that left for Azure Resource Manager.
type ARM struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewARM registers the series of ARM requests.
func NewARM(reg prometheus.Registerer) *ARM {
	a := &ARM{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_arm_calls_total",
			Help: "Requests sent to Azure Resource Manager, each retry and poll counted; status 0 is one without an answer.",
		}, []string{"operation", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "weir_arm_call_duration_seconds",
			Help:    "Time from a request to Azure Resource Manager to its answer.",
			Buckets: prometheus.ExponentialBuckets(0.02, 2, 10),
		}, []string{"operation"}),
	}
	reg.MustRegister(a.calls, a.duration)
	return a
}

// Observe counts one request. It may be called from several goroutines.
func (a *ARM) Observe(operation string, status int, took time.Duration) {
	a.calls.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	a.duration.WithLabelValues(operation).Observe(took.Seconds())
}

// RegisterQueueDepth registers a gauge that asks depth for the operations that wait.
func RegisterQueueDepth(reg prometheus.Registerer, depth func() int) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_pool_operations_waiting",
		Help: "Operations of backend pools that wait for their lane, parked ones included.",
	}, func() float64 { return float64(depth()) }))
}

// Lag measures the way from a change of endpoints to the pool that shows it.
type Lag struct{ histogram prometheus.Histogram }

// NewLag registers the histogram.
func NewLag(reg prometheus.Registerer) *Lag {
	l := &Lag{prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "weir_endpoint_to_pool_seconds",
		Help:    "Time from a change of endpoints, as the controller saw it, until Azure showed the pool that it asks for.",
		Buckets: []float64{.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600, 1800, 3600},
	})}
	reg.MustRegister(l.histogram)
	return l
}

// Observe records one written pool.
func (l *Lag) Observe(lag time.Duration) { l.histogram.Observe(lag.Seconds()) }
