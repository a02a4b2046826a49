// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// PodOptions returns the options of a cache of the pods that have a readiness gate of Weir: the admission policy
// labels them, so the API server sends no others.
func PodOptions(scheme *runtime.Scheme) cache.Options {
	return cache.Options{
		Scheme: scheme, ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
			Label:     labels.SelectorFromSet(labels.Set{metadata.GateLabel: metadata.GateLabelValue}),
			Transform: metadata.Strip(stripPod),
		}},
	}
}

// stripPod keeps the inputs of a readiness gate, and of a pod with an open one only the identity.
func stripPod(p *corev1.Pod) {
	var conditions []corev1.PodCondition
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == metadata.GateInPool && c.Status == corev1.ConditionTrue:
			*p = corev1.Pod{ObjectMeta: metadata.Identity(p.ObjectMeta, nil)}
			p.Status.Conditions = openGate
			return
		case c.Type == corev1.ContainersReady:
			conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	if conditions == nil {
		conditions = []corev1.PodCondition{}
	}
	var gates []corev1.PodReadinessGate
	if HasGate(p) {
		gates = gateOnly
	}
	*p = corev1.Pod{
		ObjectMeta: metadata.Identity(p.ObjectMeta, p.Labels), Spec: corev1.PodSpec{NodeName: metadata.Intern(p.Spec.NodeName), ReadinessGates: gates},
		Status: corev1.PodStatus{Phase: metadata.Intern(p.Status.Phase), Conditions: conditions},
	}
}

// openGate and gateOnly are shared. Cached objects are not modified.
var (
	openGate = []corev1.PodCondition{{Type: metadata.GateInPool, Status: corev1.ConditionTrue}}
	gateOnly = []corev1.PodReadinessGate{{ConditionType: metadata.GateInPool}}
)

// HasGate reports whether a pod has the readiness gate.
func HasGate(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == metadata.GateInPool })
}

// HasOpenGate reports whether the condition of the readiness gate is true.
func HasOpenGate(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == metadata.GateInPool && c.Status == corev1.ConditionTrue
	})
}

// KeepSelectors has the cached Services keep the pod selector of those that can have pools.
func KeepSelectors(o cache.Options) cache.Options {
	for object, by := range o.ByObject {
		if _, ok := object.(*corev1.Service); ok {
			by.Transform = metadata.Strip(func(s *corev1.Service) {
				selector := s.Spec.Selector
				stripService(s)
				if s.Spec.Type == corev1.ServiceTypeLoadBalancer || s.Spec.Type == corev1.ServiceTypeNodePort {
					s.Spec.Selector = selector
				}
			})
			o.ByObject[object] = by
		}
	}
	return o
}

// ServicesSelecting returns the Services of a namespace that select a pod and can have pools. It needs KeepSelectors.
func (s *Snapshot) ServicesSelecting(namespace string, pod labels.Set) []*corev1.Service {
	return slices.DeleteFunc(List[corev1.Service](s.Services, ServicesWithSelector, namespace), func(svc *corev1.Service) bool {
		return !labels.SelectorFromValidatedSet(svc.Spec.Selector).Matches(pod)
	})
}

// MemberOn returns the membership of a pool, for a pool of nodes only that of one node.
func (s *Snapshot) MemberOn(p *v1alpha1.BackendPool, node string) (membership.Set, error) {
	if p.Spec.ServiceRef != nil {
		return s.membersOf(p)
	}
	selector, err := backendpool.NodeSelector(p)
	n := Get[corev1.Node](s.Nodes, node)
	if err != nil || n == nil || selector == nil || !selector.Matches(labels.Set(n.Labels)) {
		return membership.Set{}, err
	}
	return s.memberAlone(p, n), nil
}

// MemberAlone returns the address that a node would have in a pool with an endpoint there; invalid if it cannot be a
// member, and Down if it drains. known is false for an unknown node, and while the addresses or the machine of a node are
// not set.
func (s *Snapshot) MemberAlone(p *v1alpha1.BackendPool, node string) (_ lb.Address, known bool) {
	n := Get[corev1.Node](s.Nodes, node)
	if n == nil {
		return lb.Address{}, false
	}
	set := s.memberAlone(p, n)
	if len(set.Addresses) > 0 {
		return set.Addresses[0], true
	}
	hasAddress := slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
	return lb.Address{}, hasAddress && len(set.PendingAddresses) == 0
}

func (s *Snapshot) memberAlone(p *v1alpha1.BackendPool, n *corev1.Node) membership.Set {
	var nodes iter.Seq[membership.Node] = func(yield func(membership.Node) bool) { yield(s.nodeIn(p)(n)) }
	return membership.OfNodes(nodes, lb.Family(p.Spec.IPFamily))
}
