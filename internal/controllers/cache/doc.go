// SPDX-License-Identifier: Apache-2.0

// Package cache converts the contents of the informers to the types of the decision packages. It writes
// nothing and depends neither on Azure nor on a controller.
//
// Reads come from memory, so they do not fail and do not copy: do not modify the results.
package cache
