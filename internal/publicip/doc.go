// SPDX-License-Identifier: Apache-2.0

// Package publicip keeps the public IPs of Services: it finds those that people brought, makes
// those that nobody has, and removes those that were made and that nobody wants any more. A load
// balancer has a Round for all Services that are written to it together.
//
//	ports.go      what is asked of Azure, and what a Service wants
//	round.go      reads all that the Services of a round have, and picks theirs
//	choose.go     which public IP a frontend gets, and what it has to become, whose the others are (pure)
//	resolve.go    which name the public IP of a frontend has (pure)
//	owner.go      which namespace owns a public IP that Weir did not make, and what is granted to others
//	write.go      what is written and when: before the load balancer, and after it
//	label.go      those that people brought, with the labels that Services ask for (after it)
//	remove.go     those that nobody wants any more (after it)
//	unused.go     those that stay for a Service that does not use them (pure)
//
// What fails fails for those alone who want it, and nothing is tried again here.
package publicip
