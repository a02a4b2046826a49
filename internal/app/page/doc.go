// SPDX-License-Identifier: Apache-2.0

// Package page is weir page: what weir status and weir explain say, to look at in a browser, with the
// rights of whoever started it.
//
//	serve.go          where it listens, and how it ends
//	access.go         who gets in, and what a browser may do with an answer
//	secure.go         the same for others: HTTPS, and whom the API server is asked as
//	authenticator.go  who of them gets in, and what they are told who do not
//	visits.go         who is in, for how long, and what was gathered for them
//	cache.go          what was gathered, for all who look at the same time
//	routes.go         which address shows what
//	print.go          how a sheet is printed, and texts of others on it
//	level.go          members in a pool of those that are wanted, as a bar
//	front.go          the verdict, causes, and load balancers with their pools
//	rows.go           all pools, some at a time
//	story.go          one pool, Service or node as weir explain tells it
//	calls.go          the last requests to Azure, and what keeps Weir from more
//	chain.go          the way from clients to nodes
package page
