// SPDX-License-Identifier: Apache-2.0

// Package provisioning is the controller for Provision objects: it runs attempts against target
// clusters. Package policy decides when an attempt starts and what follows from its result.
package provisioning
