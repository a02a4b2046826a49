// SPDX-License-Identifier: Apache-2.0

// Package page implements weir page: weir status and weir explain in a browser, with the permissions of the
// user who started it.
//
//	serve.go          listens on loopback, for the local user
//	access.go         token check and security headers
//	secure.go         listens on HTTPS, for other viewers
//	authenticator.go  sign-in with tokens of the cluster
//	sessions.go       sessions and their caches
//	cache.go          results shared by concurrent viewers
//	routes.go         paths
//	print.go          templates and formatting
//	membercounts.go   bar of actual and desired members
//	front.go          summary, causes, load balancers and their pools
//	rows.go           paged list of pools
//	services.go       Services with their addresses
//	details.go        one pool, Service or node, as in weir explain
//	calls.go          last requests to Azure, and what delays the next ones
//	chain.go          path from clients to nodes
package page
