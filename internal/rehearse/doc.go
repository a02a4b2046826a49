// SPDX-License-Identifier: Apache-2.0

// Package rehearse finds out what the controller would change in Azure, without changing it: the
// load balancers' own code works on a shadow of Azure, which is only read and keeps what is written
// to itself. What the shadow then shows otherwise than Azure is the plan.
//
//	plan.go         the plan of a whole cluster: ask, play, fill
//	dryrun.go       that of one Service, for its annotation
//	cluster.go      what is asked of the cluster that is planned, and the scope
//	outcome.go      what came of it
//	shadow.go       the Azure that is only read
//	differences.go  what was written to it
//	links.go        Private Link Services and subnets, as the shadow has load balancers
//	rehearsal.go    Balancers that work on a shadow
//	readings.go     what rehearsals that come together read once, and their share of Azure's reads
//
// Package view shows the differences to people and machines.
package rehearse
