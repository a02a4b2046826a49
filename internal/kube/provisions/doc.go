// SPDX-License-Identifier: Apache-2.0

// Package provisions is the controller for Provision objects: it runs attempts against target
// clusters. Package provision decides when an attempt starts and what follows from its result.
package provisions
