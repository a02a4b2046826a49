// SPDX-License-Identifier: Apache-2.0

// Package process has the parts shared by controller and provisioner: flags, logs, leader election, and the
// manager. It imports neither Azure nor Provisions, so each binary links only its own dependencies.
//
//	options.go   flags, kubeconfigs, errors
//	manager.go   the manager
//	monitoring.go  health and metrics; package httpserver limits these servers, which any pod may reach
//	lead.go      leader election and its fence
//	elapsed.go, elapsed_linux.go, elapsed_other.go  the clock of the fence
//	caches.go    a cache that does not delay shutdown
//	log.go, quietlog.go, stoplog.go, requestlog.go  log handlers
//	memory.go    garbage collection
//	version.go   the version
package process
