// SPDX-License-Identifier: Apache-2.0

// Package alerts tests config/prometheus and config/grafana with Prometheus' parser and engine. It is a
// separate module, so that Weir does not depend on Prometheus.
package alerts
