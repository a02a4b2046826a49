// SPDX-License-Identifier: Apache-2.0

// Package metrics holds Weir's Prometheus metrics. Names and labels are a contract with dashboards, listed in
// docs/reference/metrics.md.
package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/requestlog"
)

// ARMRequests counts requests to Azure Resource Manager.
type ARMRequests struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewARMRequests registers the metrics of ARM requests.
func NewARMRequests(reg prometheus.Registerer) *ARMRequests {
	a := &ARMRequests{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_arm_calls_total",
			Help: "Requests sent to Azure Resource Manager, each retry and poll counted; status 0 is one without a response.",
		}, []string{"operation", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "weir_arm_call_duration_seconds",
			Help:    "Time from a request to Azure Resource Manager to its response.",
			Buckets: prometheus.ExponentialBuckets(0.02, 2, 10),
		}, []string{"operation"}),
	}
	reg.MustRegister(a.calls, a.duration)
	return a
}

// ObserveRequest counts one request. Safe for concurrent use.
func (a *ARMRequests) ObserveRequest(c requestlog.Call) {
	a.calls.WithLabelValues(c.Op, strconv.Itoa(c.Status)).Inc()
	a.duration.WithLabelValues(c.Op).Observe(c.Took.Seconds())
}
