// SPDX-License-Identifier: Apache-2.0

// Package config reads azure.json, the file that cluster builders write for the
// Azure cloud provider, and the environment file of private clouds. The keys, their
// defaults and their meaning are those that users of that provider know;
// docs/reference/azure-json.md lists them.
//
//	config.go          the structs, one a concern
//	loadbalancers.go   that of the load balancers that Weir makes, with its checks
//	configurations.go  where there are several load balancers
//	privatelinks.go    where Private Link Services are, and what may be done for them
//	selector.go        label selectors, as values
//	tags.go            tags of what is made
//	adminstate.go      which nodes are to take no new flows
//	load.go            file → keys → Config
//	decode.go          text → keys
//	scan.go            the first place that is not JSON, and what to write there instead
//	position.go        in which line and column values are
//	ignored.go         what of the file has no effect, and which of it may be told
//	assign.go          keys → fields
//	normalize.go       defaults and checks
//	environment.go     the file that AZURE_ENVIRONMENT_FILEPATH names
//	secret.go          a string that does not print
package config
