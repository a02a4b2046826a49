// SPDX-License-Identifier: Apache-2.0

// Package backendpools contains the controllers for BackendPools. It watches everything that affects pool
// members; package backendpool decides what to do.
package backendpools
