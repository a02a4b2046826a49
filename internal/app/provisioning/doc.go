// SPDX-License-Identifier: Apache-2.0

// Package provisioning is the command line of provisioning: what people see of Provisions, and what
// they ask of them.
//
//	table.go     what a policy means, beside another
//	commands.go  list, show, logs, watch, and what is asked
package provisioning
