// SPDX-License-Identifier: Apache-2.0

// Package armemu emulates the part of Azure Resource Manager that a load
// balancer controller talks to: load balancers with their backend address
// pools, public IP addresses and prefixes, network security groups, what is behind them (network
// interfaces, virtual machines, scale sets), and virtual networks as far as these refer to them.
//
// Its worth is what other emulators leave out: etags of the whole load
// balancer, writes that overtake each other, throttling, long-running
// operations that take time, validation, and faults on demand. It keeps the
// bodies it is sent as plain JSON, unknown fields included, and knows no SDK,
// so that it is an independent witness of what a client encodes.
//
// # Use
//
//	emu := armemu.New(armemu.Options{Seed: 1, LatencyScale: 1})
//	err := emu.Put(vnetID, vnetJSON)         // a resource that is simply there
//	options.Transport = emu.Transport()      // an azcore client, no sockets
//	http.Serve(listener, emu)                // or over TCP
//	http.Serve(adminListener, emu.Admin())   // /_emu/, on its own listener
//	emu.SetAlive(ip, false)                  // a node dies: Flows tells who reaches it
//	emu.Entries(poolID)                      // who put which address into a pool
//
// # Time and concurrency
//
// An Emulator is safe for concurrent use and starts no goroutine. Operations
// finish by the clock: whoever looks next settles what has come due. Time is
// time.Now, so inside a testing/synctest bubble it is virtual. The one mutex is
// never held while time passes; a delay that a fault script asks for waits
// outside of it and ends early when the request's context does.
//
// # Fidelity
//
// Every validation rule says in [Rules] where it comes from and whether it is
// documented, observed or assumed; docs/reference/emulator.md is rendered from
// that table and lists the assumptions about timing and overlap as well.
package armemu
