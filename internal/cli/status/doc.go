// SPDX-License-Identifier: Apache-2.0

// Package status implements weir status: what is out of sync, since when, which Services are affected, and
// the fix.
//
//	read.go         reads the objects with the caller's permissions
//	report.go       finds problems and groups them by cause
//	gateways.go     problems of Gateways and their routes
//	running.go      what keeps Weir from running, or from serving a Service
//	installationread.go, deployment.go, pods.go, secret.go  what is wrong with its Deployment, pods and Secrets
//	provisioner.go  whether a provisioner runs where Provisions wait
//	paused.go       paused pools
//	health.go       rules without a member that is up
//	remedies.go     fixes, by state and Azure error code
//	text.go         output
//	watch.go        the command
package status
