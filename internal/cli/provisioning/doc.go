// SPDX-License-Identifier: Apache-2.0

// Package provisioning implements the command line for Provisions.
//
//	table.go     the retry schedule of a policy
//	commands.go  list, show, logs, watch and requests
package provisioning
