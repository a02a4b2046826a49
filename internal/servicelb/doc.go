// SPDX-License-Identifier: Apache-2.0

// Package servicelb decides what happens next to the load balancer of one Service: when it is
// asked for, what is written down before and after, and what people are told. How the load
// balancer is brought level is balancer's; how Kubernetes is spoken to is kube's.
//
//	reconcile.go  all that happens to a Service when it is looked at, from top to bottom
//	next.go       what follows from its state: Next, and Settle for the result of a request
//	finish.go     what is written down when a request has ended
//	ports.go      what the room asks of others
//	service.go    what the API server holds of a Service, and whose it is
//	desired.go    what the Service wants, and what is asked of the Balancers for it
//	state.go      what is known of its load balancer: where parts of it may be, the request under way, until when it waits, which pools have to be filled; the rest, each part written by one file:
//	level.go      what Azure is known to hold for it
//	closing.go    the request that restricts clients before all other requests
//	emptying.go   load balancers that it has left, and that wait until network interfaces have left them, too
//	links.go      how its frontend is published, what is told of that, and when it is looked at
//	told.go       what people were told, and how far the Service is, for the metric
//	endpoints.go  whether anything takes the traffic of a Service
//	unfilled.go   whether a pool of a Service is empty in Azure
//	verdicts.go   the conditions that say so on the Service, and all their reasons
//	removal.go    addresses that are not taken away before a person says so
//	dryrun.go     what would change for one that is only rehearsed, and what weir plan asks and writes down
//	states.go     the states of all Services, and what others bring and read of them
package servicelb
