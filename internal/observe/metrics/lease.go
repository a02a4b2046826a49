// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Lease is the state of the resource lease; see leader.SharedLease.
type Lease interface {
	IsHolder() bool
	FailureCount() uint64
}

// RegisterLease registers the metrics of the resource lease.
func RegisterLease(reg prometheus.Registerer, lease Lease) {
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_resource_lease_held",
			Help: "1 while the resource lease is ours, 0 while it is not.",
		}, func() float64 {
			if lease.IsHolder() {
				return 1
			}
			return 0
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "weir_resource_lease_refusals_total",
			Help: "How often the resource lease was refused to us, by another holder or by an error, or lost.",
		}, func() float64 { return float64(lease.FailureCount()) }),
	)
}
