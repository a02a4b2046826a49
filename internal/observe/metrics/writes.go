// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// RegisterWrites registers the gauges of the write quotas. Only the subscription of own becomes a label; the
// others are reported as one, the tightest.
func RegisterWrites(reg prometheus.Registerer, own lb.LoadBalancerID, figures func(now time.Time) []ratelimit.Usage) {
	reg.MustRegister(writeQuota{own: own, figures: figures})
}

// CountDeferrals registers the counter of delayed writes and returns its increment function.
func CountDeferrals(reg prometheus.Registerer) func(reason string) {
	deferrals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_write_deferrals_total",
		Help: "How often a Service had to wait for its next write, by the reason: its namespace has used its share of writes, or Azure rejected the Service, or writes of its namespace, before.",
	}, []string{"reason"})
	reg.MustRegister(deferrals)
	return func(reason string) { deferrals.WithLabelValues(reason).Inc() }
}

type writeQuota struct {
	own     lb.LoadBalancerID
	figures func(now time.Time) []ratelimit.Usage
}

var writeBudget = prometheus.NewDesc("weir_write_budget",
	"Writes and deletions in Microsoft.Network by subscription: spent in the last five minutes, the share of Azure's quota that Weir spends at most, and what is left of it now.",
	[]string{"subscription", "of"}, nil)

var deferredNamespaces = prometheus.NewDesc("weir_write_deferred_namespaces",
	"Namespaces that have used their share of writes by subscription: their Services wait for the next write.",
	[]string{"subscription"}, nil)

// Describe implements prometheus.Collector.
func (w writeQuota) Describe(to chan<- *prometheus.Desc) { to <- writeBudget; to <- deferredNamespaces }

// Collect implements prometheus.Collector.
func (w writeQuota) Collect(to chan<- prometheus.Metric) {
	tightest := map[string]ratelimit.Usage{}
	for _, f := range w.figures(time.Now()) {
		label := otherLabel
		if strings.EqualFold(f.Subscription, w.own.SubscriptionID) {
			label = w.own.SubscriptionID
		}
		if known, ok := tightest[label]; !ok || f.Remaining < known.Remaining {
			tightest[label] = f
		}
	}
	for subscription, f := range tightest {
		for of, value := range map[string]float64{"spent": f.Used, "share": f.Share, "left": f.Remaining} {
			to <- prometheus.MustNewConstMetric(writeBudget, prometheus.GaugeValue, value, subscription, of)
		}
		to <- prometheus.MustNewConstMetric(deferredNamespaces, prometheus.GaugeValue, float64(f.Deferred), subscription)
	}
}
