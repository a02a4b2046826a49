// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
)

// Options returns the cache options of the controller: EndpointSlices, Services, Nodes, BackendPools and
// Namespaces, stripped of unused fields. Reading another type is an error instead of a new watch. Nodes keep
// the taints in draining.
func Options(draining *lb.DrainSignals) cache.Options {
	return cache.Options{
		Scheme:                      metadata.Scheme(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&discoveryv1.EndpointSlice{}: {Transform: metadata.Strip(stripSlice)},
			&corev1.Service{}:            {Transform: metadata.Strip(stripService)},
			&corev1.Node{}:               {Transform: metadata.Strip(func(n *corev1.Node) { stripNode(n, draining) })},
			&v1alpha1.BackendPool{}:      {Transform: metadata.Strip(stripPool)},
			&corev1.Namespace{}:          {Transform: metadata.Strip(metadata.StripNamespace)},
		},
	}
}

// stripSlice keeps the Service label and the nodes of the endpoints.
func stripSlice(s *discoveryv1.EndpointSlice) {
	var labels map[string]string
	if service, ok := s.Labels[discoveryv1.LabelServiceName]; ok {
		labels = map[string]string{discoveryv1.LabelServiceName: service}
	}
	s.ObjectMeta = metadata.Identity(s.ObjectMeta, labels)
	s.Ports = nil
	keepHosts(s)
}

// stripService keeps the type and the dry-run annotation, and for load balancers the desired state. A Service
// that had one keeps Weir's finalizer.
func stripService(s *corev1.Service) {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer || HasFinalizer(s) {
		stripBalanced(s)
		return
	}
	dry, ok := s.Annotations[metadata.DryRunAnnotation]
	s.ObjectMeta = metadata.Identity(s.ObjectMeta, nil)
	if ok {
		s.Annotations = map[string]string{metadata.DryRunAnnotation: dry}
	}
	s.Spec = corev1.ServiceSpec{Type: metadata.Intern(s.Spec.Type)}
	s.Status = corev1.ServiceStatus{}
}

// stripNode keeps labels, providerID, internal addresses, draining taints and conditions, eviction conditions, and
// Weir's annotations.
func stripNode(n *corev1.Node, draining *lb.DrainSignals) {
	var taints []corev1.Taint
	var annotations map[string]string
	var conditions []corev1.NodeCondition
	if draining != nil {
		conditions = usedConditions(n.Status.Conditions, draining)
		for _, t := range n.Spec.Taints {
			if len(draining.DrainReasons(lb.NodeState{Taints: []lb.NodeTaint{taintOf(t)}})) > 0 {
				taints = append(taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
			}
		}
		for _, name := range []string{metadata.PreemptionAnnotation, lb.DelayAnnotation} {
			if value, ok := n.Annotations[name]; ok {
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations[name] = value
			}
		}
	}
	n.ObjectMeta = metadata.Identity(n.ObjectMeta, n.Labels)
	n.Annotations = annotations
	n.Spec = corev1.NodeSpec{ProviderID: n.Spec.ProviderID, Taints: taints}
	var internal []corev1.NodeAddress
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			internal = append(internal, a)
		}
	}
	n.Status = corev1.NodeStatus{Addresses: internal, Conditions: conditions}
}

const maxMessageLength = 64

// usedConditions keeps the conditions that drain a node or announce an eviction, without heartbeats.
func usedConditions(conditions []corev1.NodeCondition, draining *lb.DrainSignals) (kept []corev1.NodeCondition) {
	for _, c := range conditions {
		condition := ConditionOf(c)
		if condition.IsEviction() || len(draining.DrainReasons(lb.NodeState{Conditions: []lb.NodeCondition{condition}})) > 0 {
			message := strings.Clone(c.Message[:min(len(c.Message), maxMessageLength)])
			kept = append(kept, corev1.NodeCondition{Type: c.Type, Status: c.Status, Message: message, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return kept
}

// stripPool removes managed fields, and most of a status that is not loaded yet. Without Weir's finalizer the
// cached status is used as is; otherwise package backendpool reads it.
func stripPool(p *v1alpha1.BackendPool) {
	finalizers, owners, retry := p.Finalizers, p.OwnerReferences, p.Annotations[v1alpha1.RetryNowAnnotation]
	p.ObjectMeta = metadata.Identity(p.ObjectMeta, nil)
	p.Finalizers, p.OwnerReferences = finalizers, owners
	if retry != "" && len(retry) <= maxRetryLength {
		p.Annotations = map[string]string{v1alpha1.RetryNowAnnotation: retry}
	}
	p.Spec.LoadBalancer.Name, p.Spec.IPFamily = metadata.Intern(p.Spec.LoadBalancer.Name), metadata.Intern(p.Spec.IPFamily)
	if slices.Contains(finalizers, v1alpha1.Finalizer) {
		p.Status = v1alpha1.BackendPoolStatus{PoolID: p.Status.PoolID, Foreign: p.Status.Foreign, Down: p.Status.Down, MadeFor: p.Status.MadeFor}
	}
	if slices.Equal(finalizers, sharedFinalizers) {
		p.Finalizers = sharedFinalizers
	}
}

// maxRetryLength limits a retry annotation, which tenants write; it contains a time.
const maxRetryLength = 64

// sharedFinalizers is the shared finalizer list of most BackendPools. Cached objects are not modified.
var sharedFinalizers = []string{v1alpha1.Finalizer}

// stripBalanced keeps the inputs of the load balancer of a Service.
func stripBalanced(s *corev1.Service) {
	annotations := map[string]string{}
	for name, value := range s.Annotations {
		if IsKept(name) {
			annotations[name] = value
		}
	}
	finalizers, generation := s.Finalizers, s.Generation
	s.ObjectMeta = metadata.Identity(s.ObjectMeta, s.Labels)
	s.Annotations, s.Finalizers, s.Generation = annotations, finalizers, generation
	spec := s.Spec
	s.Spec = corev1.ServiceSpec{
		Type: metadata.Intern(spec.Type), LoadBalancerClass: spec.LoadBalancerClass, Ports: spec.Ports, IPFamilies: spec.IPFamilies,
		ExternalTrafficPolicy: metadata.Intern(spec.ExternalTrafficPolicy), HealthCheckNodePort: spec.HealthCheckNodePort,
		SessionAffinity: metadata.Intern(spec.SessionAffinity), LoadBalancerIP: spec.LoadBalancerIP,
		LoadBalancerSourceRanges: spec.LoadBalancerSourceRanges,
	}
	s.Status = corev1.ServiceStatus{LoadBalancer: s.Status.LoadBalancer, Conditions: FilterConditions(s.Status.Conditions, metadata.ConditionConflict, metadata.ConditionPrivateLink, ConditionAccepted, ConditionProgrammed, ConditionSecurityGroup)}
}
