// SPDX-License-Identifier: Apache-2.0

// Package apifault stands between a client and a real kube-apiserver, breaks what it
// is told to break, and keeps a log of what the client sent and what the API server
// saw. It is for tests alone.
//
//	proxy.go    Proxy: how it is reached, and how a request goes through it
//	fault.go    Fault: what a request meets; Rule: which requests meet it
//	network.go  Network: what lies below TLS, with resets and partitions
//	call.go     Call: one request as both sides saw it
package apifault
