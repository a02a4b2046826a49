// SPDX-License-Identifier: Apache-2.0

// Package migration carries out what package migrate decides: once, when a process begins to lead. Until
// it has ended, nothing else of Weir writes to Azure.
//
//	ports.go      what it reads and writes
//	migration.go  from the first look to the end
//	journal.go    what is on record by when, and what to make of a record that is strange
//	asked.go      where people have it stop
//	undo.go       where people have it taken back
//	owed.go       the addresses that Services have to get back
//	tell.go       what people hear of their Services
//	say.go        what is kept of it for who asks from elsewhere
//	read.go       what Azure shows of the load balancers, and of the machines behind them
//	status.go     how it stands, as text and as JSON
//	plan.go       what a migration would do, as text and as JSON
//	before.go     what is read, and what is checked, before it begins
//	rights.go     which rights are missing
//	write.go      the requests of some steps, side by side
package migration
