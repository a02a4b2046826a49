// SPDX-License-Identifier: Apache-2.0

// Package objects converts Provision objects to the types of package policy, strips them for the cache,
// and keeps the logs of attempts in ConfigMaps.
package objects
