// SPDX-License-Identifier: Apache-2.0

// Package requestlog records the latest requests to Azure Resource Manager and their causes.
//
//	log.go     Call, and a Log with bounded memory
//	cause.go   the causes of a request, in its context
//	handler.go, calls.go   serves the log to clients on loopback
package requestlog
