// SPDX-License-Identifier: Apache-2.0

// Package pods opens the readiness gates of pods. decision.go decides, as a pure function; the other
// files collect what is known of the Services and pools of a pod, and write the condition.
//
// A gate only opens. It depends only on the pod and on the Services of its namespace that select it. Nothing in a pod causes a
// request to Azure.
package pods
