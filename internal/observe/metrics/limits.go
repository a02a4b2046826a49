// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// LimitUsage is how much of one of Azure's limits a resource uses: 1 if it is reached.
type LimitUsage struct {
	Resource, Limit string
	Ratio           float64
}

type limitGauge struct {
	list func() []LimitUsage
	desc *prometheus.Desc
}

// RegisterLimits registers the gauge of Azure's limits.
func RegisterLimits(reg prometheus.Registerer, list func() []LimitUsage) {
	reg.MustRegister(limitGauge{list, prometheus.NewDesc("weir_limit_usage_ratio",
		"Share of a limit of Azure that a load balancer, the security group or the subscription in a region uses, as last observed.", []string{"resource", "limit"}, nil)})
}

// Describe implements prometheus.Collector.
func (g limitGauge) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

// Collect implements prometheus.Collector.
func (g limitGauge) Collect(ch chan<- prometheus.Metric) {
	for _, u := range g.list() {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, u.Ratio, u.Resource, u.Limit)
	}
}
