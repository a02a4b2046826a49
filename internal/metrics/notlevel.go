// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// mostNotLevel is how many BackendPools have a series of their own. Whoever may make BackendPools
// chooses how many there are and what they are called.
const mostNotLevel = 100

// NotLevel is a BackendPool that is to be level and is not.
type NotLevel struct {
	Namespace, Name string
	// State is why, as kubectl shows it.
	State string
	// Since is when it was level last, else when it was first heard of.
	Since time.Time
}

// RegisterNotLevel registers the gauges of BackendPools that are not level, which ask when somebody
// looks.
func RegisterNotLevel(reg prometheus.Registerer, pools func() []NotLevel) {
	reg.MustRegister(notLevel{
		pools: pools,
		each: prometheus.NewDesc("weir_backendpool_not_level_seconds",
			"For how long a BackendPool has not been level, by its name; the 100 that have waited longest. Paused ones and dry runs are left out.",
			[]string{"namespace", "name", "state"}, nil),
		oldest: prometheus.NewDesc("weir_backendpools_not_level_oldest_seconds",
			"For how long the BackendPool that has waited longest has not been level; 0 if all are.", nil, nil),
	})
}

type notLevel struct {
	pools        func() []NotLevel
	each, oldest *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (n notLevel) Describe(ch chan<- *prometheus.Desc) {
	ch <- n.each
	ch <- n.oldest
}

// Collect implements prometheus.Collector.
func (n notLevel) Collect(ch chan<- prometheus.Metric) {
	now, oldest := time.Now(), 0.0
	pools := n.pools()
	slices.SortFunc(pools, func(a, b NotLevel) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i, p := range pools[:min(len(pools), mostNotLevel)] {
		age := max(0, now.Sub(p.Since).Seconds()) // the clock that wrote Since may be another's
		if i == 0 {
			oldest = age
		}
		ch <- prometheus.MustNewConstMetric(n.each, prometheus.GaugeValue, age, p.Namespace, p.Name, p.State)
	}
	ch <- prometheus.MustNewConstMetric(n.oldest, prometheus.GaugeValue, oldest)
}
