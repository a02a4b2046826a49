// SPDX-License-Identifier: Apache-2.0

// Package config reads azure.json, the file that cluster builders write for the
// Azure cloud provider, and the environment file of private clouds. The keys, their
// defaults and their meaning are those that users of that provider know;
// docs/reference/azure-json.md lists them.
//
//	config.go       the structs, one a concern
//	load.go         file → Config, and what of the file has no effect
//	normalize.go    defaults and checks
//	environment.go  the file that AZURE_ENVIRONMENT_FILEPATH names
//	secret.go       a string that does not print
package config
