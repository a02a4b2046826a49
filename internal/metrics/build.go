// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterBuild registers the series that says which Weir this is.
func RegisterBuild(reg prometheus.Registerer, version string) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_build_info",
		Help: "1, with the version of Weir, the version of Go that compiled it, and the processor's architecture.",
		ConstLabels: prometheus.Labels{
			"version": version, "goversion": runtime.Version(), "goarch": runtime.GOARCH,
		},
	}, func() float64 { return 1 }))
}
