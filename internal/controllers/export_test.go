// SPDX-License-Identifier: Apache-2.0

package controllers

import corev1 "k8s.io/api/core/v1"

func (c *Cluster) Preemptions() []*corev1.Event { return c.evictions.CachedEvents() }
