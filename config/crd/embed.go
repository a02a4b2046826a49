// SPDX-License-Identifier: Apache-2.0

// Package crd holds the custom resource definitions of Weir, for programs that
// install them.
package crd

import "embed"

// Files are the definitions, one YAML file each.
//
//go:embed weir.dev_*.yaml
var Files embed.FS
