// SPDX-License-Identifier: Apache-2.0

// Package chart tests charts/weir with Helm's library. It is a separate module, so that Weir does not
// depend on Helm; shared dependencies have the same versions as in Weir, which saves compilation.
package chart
