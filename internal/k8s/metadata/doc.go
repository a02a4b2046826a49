// SPDX-License-Identifier: Apache-2.0

// Package metadata has the scheme of the types that Weir uses, and the names of the labels, annotations, finalizers
// and conditions that it reads and writes.
package metadata
