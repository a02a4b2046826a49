// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxOutOfSync limits the BackendPools with their own series: users choose their number and names.
const maxOutOfSync = 100

// OutOfSyncPool is a BackendPool that is out of sync.
type OutOfSyncPool struct {
	Namespace, Name string
	State           string
	// Since is when it was last in sync, else when it was first seen.
	Since time.Time
}

// RegisterOutOfSync registers the gauges of BackendPools that are out of sync.
func RegisterOutOfSync(reg prometheus.Registerer, pools func() []OutOfSyncPool) {
	reg.MustRegister(outOfSyncCollector{
		pools: pools,
		each: prometheus.NewDesc("weir_backendpool_out_of_sync_seconds",
			"Time for which a BackendPool has been out of sync, by name; the 100 longest. Paused pools and dry runs are excluded.",
			[]string{"namespace", "name", "state"}, nil),
		oldest: prometheus.NewDesc("weir_backendpools_out_of_sync_oldest_seconds",
			"Longest time for which a BackendPool has been out of sync; 0 if all are in sync.", nil, nil),
	})
}

type outOfSyncCollector struct {
	pools        func() []OutOfSyncPool
	each, oldest *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (o outOfSyncCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- o.each
	ch <- o.oldest
}

// Collect implements prometheus.Collector.
func (o outOfSyncCollector) Collect(ch chan<- prometheus.Metric) {
	now, oldest := time.Now(), 0.0
	pools := o.pools()
	slices.SortFunc(pools, func(a, b OutOfSyncPool) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i, p := range pools[:min(len(pools), maxOutOfSync)] {
		age := max(0, now.Sub(p.Since).Seconds()) // Since may come from another machine's clock
		if i == 0 {
			oldest = age
		}
		ch <- prometheus.MustNewConstMetric(o.each, prometheus.GaugeValue, age, p.Namespace, p.Name, p.State)
	}
	ch <- prometheus.MustNewConstMetric(o.oldest, prometheus.GaugeValue, oldest)
}
