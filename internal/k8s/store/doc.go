// SPDX-License-Identifier: Apache-2.0

// Package store stores facts that Weir has to know after a restart, in ConfigMaps of its own
// namespace, where no tenant can write. Writes keep the keys of other writers and retry on
// conflict.
package store
