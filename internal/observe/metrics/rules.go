// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// RegisterMachineRules registers the gauges of rules per network interface, by load balancer.
func RegisterMachineRules(reg prometheus.Registerer, used func() map[string]int, limit int) {
	reg.MustRegister(countGauge{used, prometheus.NewDesc("weir_machine_rules",
		"Load balancing and inbound NAT rules that a network interface has of a load balancer and its internal twin, as Azure showed them last.", []string{"load_balancer"}, nil)})
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_machine_rules_limit",
		Help: "Azure's limit of these rules for a network interface.",
	}, func() float64 { return float64(limit) }))
}

// RegisterRules registers the gauges of rules per load balancer, for those in azure.json. A limit of 0 means
// no limit and has no series.
func RegisterRules(reg prometheus.Registerer, byName func() map[string]int, limit int) {
	reg.MustRegister(countGauge{byName, prometheus.NewDesc("weir_load_balancer_rules",
		"Load balancing rules of each load balancer of the cluster, as Azure showed it last.", []string{"load_balancer"}, nil)})
	if limit > 0 {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_load_balancer_rules_limit",
			Help: "How many rules Weir gives one load balancer at most.",
		}, func() float64 { return float64(limit) }))
	}
}
