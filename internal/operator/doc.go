// SPDX-License-Identifier: Apache-2.0

// Package operator serves what people ask a running Weir: it reads, and changes nothing.
//
//	server.go   who is answered: those on this machine alone
//	calls.go    the last requests to Azure
package operator
