// SPDX-License-Identifier: Apache-2.0

// Package privatelink decides which Private Link Service publishes a frontend, who of the Services on
// the frontend has a say in it, and what is to be done next. It is pure: what Services ask for and
// what Azure shows go in as values, and one step comes out, which may be done twice without harm.
//
//	desired.go  the Private Link Service that a frontend shall have, and why it cannot have one
//	share.go    whose word counts among the Services of a frontend, and who hears that it is not his
//	step.go     what is done next: made, changed, disconnected, deleted, waited for, refused
//	nat.go      the addresses that a Private Link Service has, and those that it shall have
//	count.go    its connections, for people
//
// A frontend has one. Whatever nobody of the cluster made is left alone.
package privatelink
