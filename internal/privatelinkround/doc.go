// SPDX-License-Identifier: Apache-2.0

// Package privatelinkround keeps the Private Link Services of frontends: it asks Azure for what room
// privatelink decides, until nothing is left to do. A load balancer has a round for all Services that
// are due there together, and one more before it lets go of a frontend that is published.
//
//	ports.go       what is asked of Azure and of the cluster, what a Service wants, and what came of it
//	round.go       the frontends of a load balancer as the Services on them ask, side by side
//	frontends.go   which frontends are looked at, and who is on them (pure)
//	bounds.go      how many one namespace may have on a load balancer (pure)
//	advance.go     the steps of one frontend, one after the other
//	lists.go       what is read: each resource group and each subnet once a round
//	tell.go        what people are told
//
// What fails fails for the Services of one frontend, and nothing is tried again here but once what
// somebody else wrote in between.
package privatelinkround
