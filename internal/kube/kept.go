// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ClassAnnotation records on a Service the spec.loadBalancerClass under which Weir serves it;
// it is empty for none.
const ClassAnnotation = "weir.dev/load-balancer-class"

// EventKept is the reason of the event that tells of a Service that is not served any more, and
// keeps what it has.
const EventKept = "LoadBalancerKept"

// keeps reports whether a Service that Weir has served under another class keeps what it has in
// Azure. Its own class is not what changed then, for it cannot change while the type is
// LoadBalancer: the flag did. What the record does not tell is kept, too.
func keeps(s *corev1.Service, class string) bool {
	is := orElse(s.Spec.LoadBalancerClass, "")
	if !bound(s) || leaving(s) || is == class {
		return false
	}
	was, recorded := s.Annotations[ClassAnnotation]
	return !recorded || was == is
}

// keeps is keeps for the class that Weir serves.
func (c *Cluster) keeps(s *corev1.Service) bool {
	return c.balancers != nil && keeps(s, c.balancing.Class)
}

// whyKept says why a Service keeps what it has, and what people can do.
func (c *Cluster) whyKept(s *corev1.Service) string {
	return fmt.Sprintf("the class is %q, and --load-balancer-class is %q: what Weir has made stays, endpoints are followed, and nothing else is changed. "+
		"Set the flag back to have it served; delete the Service, or change its type, to give up what it has", orElse(s.Spec.LoadBalancerClass, ""), c.balancing.Class)
}

// tellKept says once that a Service keeps what it has. The caller holds the claim.
func (c *Cluster) tellKept(ctx context.Context, s *corev1.Service, cl *claim) {
	why := c.whyKept(s)
	if cl.trouble != stateKept {
		c.events.add(s, corev1.EventTypeWarning, EventKept, sentence("Kept: "+why, maxMessage))
		c.opts.Log.WarnContext(ctx, "a Service of another class keeps what Weir made for it", "service", key(s.Namespace, s.Name),
			"class", orElse(s.Spec.LoadBalancerClass, ""), "served", c.balancing.Class)
	}
	cl.trouble, cl.told = stateKept, why
}
