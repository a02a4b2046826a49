// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"weir.dev/weir/internal/service"
)

// CleanupFinalizer is that of Kubernetes' service controller, which cloud providers run: it
// keeps a Service until nothing of its load balancer is left.
const CleanupFinalizer = "service.kubernetes.io/load-balancer-cleanup"

// inherited reports whether a service controller has served a Service that is Weir's now.
// Where Weir serves the Services without a class no other one runs, and nobody but Weir can
// take that finalizer off one that goes.
func (c *Cluster) inherited(s *corev1.Service) bool {
	return c.heirOf(s) && s.Spec.Type == corev1.ServiceTypeLoadBalancer && controllerutil.ContainsFinalizer(s, CleanupFinalizer)
}

// heirOf reports whether nobody but Weir looks after the finalizers of a Service's load
// balancer.
func (c *Cluster) heirOf(s *corev1.Service) bool {
	return c.balancers != nil && c.balancing.Class == "" && s.Spec.LoadBalancerClass == nil
}

// held reports whether Azure may hold something of a Service that Weir has to remove.
func (c *Cluster) held(s *corev1.Service) bool { return bound(s) || c.inherited(s) }

// letGo takes off the finalizers that keep a Service until its load balancer is gone.
func (c *Cluster) letGo(s *corev1.Service) {
	controllerutil.RemoveFinalizer(s, ServiceFinalizer)
	if c.heirOf(s) {
		controllerutil.RemoveFinalizer(s, CleanupFinalizer)
	}
}

// inheritedGroups are the further resource groups of public IPs that another service
// controller may have made for a Service: nobody has recorded them.
func (c *Cluster) inheritedGroups(s *corev1.Service) []string {
	if bound(s) || !c.inherited(s) {
		return nil
	}
	w, _ := service.Desired(wishing(s), c.balancing.Settings)
	return c.groupsOf(&w)
}
