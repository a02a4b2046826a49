// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the complete Weir controller against an in-memory cluster in virtual time.
//
// A Stage holds an API server, an Azure and Weir processes: app.RunWith with the real client-go,
// controller-runtime and Azure SDK. A schedule writes Services, nodes, endpoints and BackendPools,
// injects faults into both servers and kills processes. The desired Azure state is computed from
// the Kubernetes objects alone and compared with the actual one.
//
// # Time and concurrency
//
// A Stage lives in one testing/synctest bubble and is driven by one goroutine. The same seed gives
// the same schedule; the Go scheduler decides the order of requests at the same instant.
package cluster
