// SPDX-License-Identifier: Apache-2.0

// Package offline is a cluster without an API server, for plans: its objects come from files, or
// are read once, and what is written changes these.
//
//	cluster.go   the rooms of a controller, over objects in memory
//	rehearsed.go what a plan asks of it
//	memory.go    the objects, in the place of an API server
//	objects.go   the objects, as an API server shows them
//	files.go     objects from files
//	broken.go    which of them an API server refuses
package offline
