// SPDX-License-Identifier: Apache-2.0

// Package routing decides which routes attach to the listeners of a Gateway, which node port each listener forwards to,
// and the conditions of both, as Gateway API specifies.
package routing
