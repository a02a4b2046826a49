// SPDX-License-Identifier: Apache-2.0

// Package armemu emulates the parts of Azure Resource Manager that a load balancer controller uses:
// load balancers, public IPs, security groups, and the machines and networks they reference.
//
// Unlike other emulators it models etags, superseded writes, throttling, long-running operations,
// validation, and fault injection. It stores request bodies as plain JSON and uses no SDK, so it
// checks a client's encoding independently.
//
// # Use
//
//	emu := armemu.New(armemu.Options{Seed: 1, LatencyScale: 1})
//	err := emu.Put(vnetID, vnetJSON)         // create a resource directly
//	options.Transport = emu.Transport()      // an azcore client, no sockets
//	http.Serve(listener, emu)                // or over TCP
//	http.Serve(adminListener, emu.Admin())   // /_emu/, on a separate listener
//	emu.SetAlive(ip, false)                  // a node dies: Flows shows the effect
//	emu.Entries(poolID)                      // origin of each address in a pool
//
// # Time and concurrency
//
// An Emulator is safe for concurrent use and starts no goroutine. Each request first completes the
// operations that are due. Time is time.Now, virtual inside a testing/synctest bubble. The mutex is
// never held while time passes.
//
// # Fidelity
//
// [Rules] lists every validation rule with its source, and whether it is documented, observed or
// assumed. docs/reference/emulator.md is rendered from it.
package armemu
