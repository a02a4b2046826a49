// SPDX-License-Identifier: Apache-2.0

// Package alerts tests config/prometheus and config/grafana with Prometheus' own parser and engine. It
// is a module of its own, so that what ships has nothing of it.
package alerts
