// SPDX-License-Identifier: Apache-2.0

// Package readiness decides when the readiness gate of a pod opens. It is pure: the pod, its Services and what was
// last read of their pools are values, and time is an argument.
//
// A gate only opens: no decision closes it.
package readiness
