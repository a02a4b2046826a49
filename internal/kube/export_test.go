// SPDX-License-Identifier: Apache-2.0

package kube

import corev1 "k8s.io/api/core/v1"

// Preemptions are the events that are held in memory.
func (c *Cluster) Preemptions() []*corev1.Event { return c.evictions.Held() }
