// SPDX-License-Identifier: Apache-2.0

// Package events writes Kubernetes events, one at a time, until the last attempt of the leader has
// ended.
package events
