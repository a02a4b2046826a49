// SPDX-License-Identifier: Apache-2.0

// Package dataplane sends real TCP connections and UDP datagrams through the emulated Azure and a
// cluster's nodes to pods, all on loopback.
//
//	net := dataplane.NewNetwork()
//	lb := dataplane.StartBalancer(net, dataplane.BalancerOptions{Source: dataplane.EmulatorSource(emu)})
//	cluster := dataplane.StartCluster(net)
//	cluster.Apply(state)                   // Services, EndpointSlices, Nodes, Pods
//	at, ok := net.Resolve(frontend)        // for curl
//	load := dataplane.StartLoad(dataplane.LoadOptions{...})
//	count := load.Stop()
//
// Every address of the emulated network has a fixed address in 127.0.0.0/8. The balancer forwards by
// the rules, pools, admin states and probes that Azure holds; nodes act as kube-proxy does; pods answer
// HTTP requests and echo datagrams.
//
// # Concurrency
//
// Every type is safe for concurrent use. Close and Stop return when all goroutines of the object have
// ended. Open connections and flows are bounded.
package dataplane
