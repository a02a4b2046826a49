// SPDX-License-Identifier: Apache-2.0

// Package config holds the roles that Weir ships, for programs that ask who has them.
package config

import "embed"

// Roles are the roles of Kubernetes, those of the controller and those for settings that need them, and of Azure.
//
//go:embed rbac/*role.yaml admin-state/*role.yaml metrics/cluster-role.yaml resource-lease/role.yaml several-load-balancers/cluster-role.yaml azure-role.json
var Roles embed.FS

// Provisioning are the roles of the provisioner.
//
//go:embed provisioning/*role.yaml
var Provisioning embed.FS
