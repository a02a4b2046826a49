// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/tls"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"weir.dev/weir/internal/kube/apiserver"
)

// metricsOptions say how metrics are served. A self-signed certificate is enough: the client has to
// authenticate, not the server.
func metricsOptions(o Options) metricsserver.Options {
	if !o.MetricsSecure {
		return metricsserver.Options{BindAddress: o.MetricsAddress}
	}
	return metricsserver.Options{
		BindAddress: o.MetricsAddress, SecureServing: true, FilterProvider: apiserver.MetricsAccess,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"} }},
	}
}
