// SPDX-License-Identifier: Apache-2.0

// Package status is weir status: what is not level in a cluster, since when, for whom, and what helps.
//
//	read.go      what the API server knows, with the rights of whoever asks
//	judge.go     what of it is wrong, and what stands behind most of it
//	provisioner.go  whether a provisioner runs where Provisions wait for one
//	paused.go    what people have paused, which is not wrong
//	remedies.go  what helps, by state and by Azure's error code
//	text.go      how people see it
//	watch.go     how it changes
package status
