// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/service"
)

// EventNoEffect is the reason of the event that tells of restrictions that keep nobody out.
const EventNoEffect = "RestrictionHasNoEffect"

// Unenforced says which restrictions of a Service that has a load balancer of Weir's have no
// effect, and why; empty if there are none.
func (c *Cluster) Unenforced(s *corev1.Service) string {
	if !c.ours(s) {
		return ""
	}
	return wishing(s).Unenforced(c.balancing.Guarded)
}

// tellUnenforced tells of restrictions that have no effect, once of the same. Where such
// Services are refused, the refusal says it.
func (c *Cluster) tellUnenforced(s *corev1.Service, cl *claim) {
	text := c.Unenforced(s)
	if text != "" && text != cl.unenforced && !c.balancing.RequireEffectiveRestrictions {
		c.events.add(s, corev1.EventTypeWarning, EventNoEffect, sentence(text, maxMessage))
	}
	cl.unenforced = text
}

// unenforcedProblems refuses a Service whose restrictions have no effect, if azure.json says so.
func (c *Cluster) unenforcedProblems(s *corev1.Service) []service.Problem {
	text := c.Unenforced(s)
	if text == "" || !c.balancing.RequireEffectiveRestrictions {
		return nil
	}
	return []service.Problem{{Field: "requireEffectiveRestrictions of azure.json", Value: "true", Want: "no " + text}}
}
