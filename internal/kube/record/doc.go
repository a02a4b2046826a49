// SPDX-License-Identifier: Apache-2.0

// Package record stores facts that Weir has to know after a restart, in ConfigMaps of its own
// namespace: the cluster's name in Azure, the place of its load balancers, observed Azure behavior,
// the owners of public IPs and private addresses, and the migration journal.
//
// No tenant can write these ConfigMaps. Writes keep the keys of other writers and retry on
// conflict.
package record
