// SPDX-License-Identifier: Apache-2.0

// Package objects converts Provision objects to the types of package policy, and strips them for the cache.
package objects
