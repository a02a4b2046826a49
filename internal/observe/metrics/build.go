// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterBuild registers the version of the controller.
func RegisterBuild(reg prometheus.Registerer, version string) {
	registerBuild(reg, "weir_build_info", "1, with the version of Weir, the version of Go that compiled it, and the processor's architecture.", version)
}

// RegisterProvisionerBuild registers the version of the provisioner. It has its own name, so that alerts on
// the absence of the controller do not depend on the provisioner.
func RegisterProvisionerBuild(reg prometheus.Registerer, version string) {
	registerBuild(reg, "weir_provisioner_build_info", "1, with the version of the provisioner, the version of Go that compiled it, and the processor's architecture.", version)
}

func registerBuild(reg prometheus.Registerer, name, help, version string) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: name, Help: help,
		ConstLabels: prometheus.Labels{
			"version": version, "goversion": runtime.Version(), "goarch": runtime.GOARCH,
		},
	}, func() float64 { return 1 }))
}
