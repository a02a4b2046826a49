// SPDX-License-Identifier: Apache-2.0

// Package pods opens the readiness gates of pods. Package readiness decides; this package collects what is known of
// the Services and pools of a pod and writes the condition.
//
// A gate depends only on the pod and on the Services of its namespace that select it. Nothing in a pod causes a
// request to Azure.
package pods
