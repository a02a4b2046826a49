// SPDX-License-Identifier: Apache-2.0

// Package process has the parts that the controller and the provisioner have in common: flags, logs,
// the leader election, and the manager with its health and metrics endpoints. It knows neither Azure
// nor Provisions, so that each program links its own dependencies only.
//
//	options.go   the common flags, kubeconfigs, and the errors of both
//	manager.go   the manager of a process
//	lead.go      the lead, its fence, and its end
//	elapsed.go, elapsed_linux.go, elapsed_other.go  the clock of the fence
//	caches.go    a cache that does not delay the end of the process
//	log.go, quietlog.go, stoplog.go, requestlog.go  the log
//	memory.go    the garbage collection
//	version.go   the version
package process
