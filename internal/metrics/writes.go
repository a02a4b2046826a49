// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pace"
)

// RegisterWrites registers what is left of the quotas of writes, which figures is asked for.
// Only the subscription of own becomes a label; of others the tightest stands for all.
func RegisterWrites(reg prometheus.Registerer, own lb.LoadBalancerID, figures func(now time.Time) []pace.Figures) {
	reg.MustRegister(writes{own: own, figures: figures})
}

type writes struct {
	own     lb.LoadBalancerID
	figures func(now time.Time) []pace.Figures
}

var writeBudget = prometheus.NewDesc("weir_write_budget",
	"Writes and deletions in Microsoft.Network by subscription: spent in the last five minutes, the share of Azure's quota that Weir spends at most, and what is left of it now.",
	[]string{"subscription", "of"}, nil)

// Describe implements prometheus.Collector.
func (w writes) Describe(to chan<- *prometheus.Desc) { to <- writeBudget }

// Collect implements prometheus.Collector.
func (w writes) Collect(to chan<- prometheus.Metric) {
	tightest := map[string]pace.Figures{}
	for _, f := range w.figures(time.Now()) {
		label := elsewhere
		if strings.EqualFold(f.Subscription, w.own.SubscriptionID) {
			label = w.own.SubscriptionID
		}
		if known, is := tightest[label]; !is || f.Left < known.Left {
			tightest[label] = f
		}
	}
	for subscription, f := range tightest {
		for of, value := range map[string]float64{"spent": f.Spent, "share": f.Share, "left": f.Left} {
			to <- prometheus.MustNewConstMetric(writeBudget, prometheus.GaugeValue, value, subscription, of)
		}
	}
}
