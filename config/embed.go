// SPDX-License-Identifier: Apache-2.0

// Package config embeds the shipped roles, for programs that check permissions.
package config

import "embed"

// Roles are the Kubernetes roles of the controller, including those of optional settings, and its Azure role.
//
//go:embed rbac/*role.yaml admin-state/*role.yaml delay-node-deletion/cluster-role.yaml gateway-api/cluster-role.yaml metrics/cluster-role.yaml readiness-gates/cluster-role.yaml resource-lease/role.yaml several-load-balancers/cluster-role.yaml azure-role.json azure-role-interfaces.json
var Roles embed.FS

// Provisioning are the Kubernetes roles of the provisioner.
//
//go:embed provisioning/*role.yaml
var Provisioning embed.FS

// Admission are the admission policies.
//
//go:embed admission/policy.yaml
var Admission embed.FS
