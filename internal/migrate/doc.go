// SPDX-License-Identifier: Apache-2.0

// Package migrate decides how the load balancers of a cluster become Standard ones, and every address
// stays. It is pure: what was written down, and what Azure shows, go in as values; what has to be
// written next comes out. Each step is found from what is there alone, so that whoever is stopped goes
// on where Azure is.
//
//	journal.go    every address that has to be there in the end
//	asked.go      what people ask of it: to stop, and to begin
//	told.go       what the Weir that leads says of it
//	stock.go      what Azure shows, and what Services show → the journal
//	preflight.go  what keeps a migration from starting, by name
//	guard.go      which machines no network security group lets anything in to
//	limits.go     what would be more than Azure takes
//	rights.go     what Azure asks of who migrates, by where
//	next.go       the journal, and what Azure shows → what is written next
//	refuse.go     what Azure refuses → which addresses are waited for, and which are owed
//	owed.go       addresses that Services get back, and users who agree to others
//	detach.go     which machines have to leave, and how
//	members.go    where machines are before they leave
//	undo.go       the journal, and what Azure shows → what is written next to take it back
//	rehearse.go   all that would be written, one step after the other
//	cutoff.go     how long Services are not reached meanwhile
//	where.go      where each address of the journal is now
//	verify.go     which addresses are not where the journal has them
package migrate
