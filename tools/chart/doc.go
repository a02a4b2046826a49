// SPDX-License-Identifier: Apache-2.0

// Package chart tests charts/weir with Helm's own library. It is a module of its own, so that what ships
// has nothing of it; what it has in common with Weir it has in the same version, and so compiles nothing
// of that twice.
package chart
