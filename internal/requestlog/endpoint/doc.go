// SPDX-License-Identifier: Apache-2.0

// Package endpoint serves read-only diagnostics of a running Weir on loopback.
//
//	server.go   the handler and its access check
//	calls.go    the last requests to Azure
package endpoint
