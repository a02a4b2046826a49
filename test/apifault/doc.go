// SPDX-License-Identifier: Apache-2.0

// Package apifault is a fault-injecting proxy for a real kube-apiserver. It logs what the client
// sent and what the API server received. For tests only.
//
//	proxy.go    Proxy: request handling
//	fault.go    Fault and Rule
//	network.go  Network: resets and partitions below TLS
//	call.go     Call: a logged request
package apifault
