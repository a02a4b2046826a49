// SPDX-License-Identifier: Apache-2.0

// Package config reads azure.json, the configuration file of cloud-provider-azure, and the environment file
// of private clouds. Keys, defaults and meanings are those of cloud-provider-azure;
// docs/reference/azure-json.md lists them.
//
//	config.go          the structs
//	loadbalancers.go   load balancers that Weir creates
//	configurations.go  several load balancers
//	privatelinks.go    Private Link Services
//	selector.go        validation of label selectors
//	tags.go            tags of created resources
//	adminstate.go      detection of leaving nodes
//	load.go            file → keys → Config
//	decode.go          text → keys
//	scan.go            JSON errors with a hint
//	position.go        line and column of values
//	ignored.go         warning about keys without effect
//	assign.go          keys → fields
//	normalize.go       defaults and validation
//	strategy.go        whether writes overlap
//	environment.go     the file in AZURE_ENVIRONMENT_FILEPATH
//	secret.go          a string that is never printed
package config
