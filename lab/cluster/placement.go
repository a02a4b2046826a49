// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"weir.dev/weir/internal/config"
)

// The cluster's second load balancer, and the node label and Service annotation that record the
// placement.
const (
	secondName     = "second"
	placementLabel = "weir.dev/load-balancer"
)

// addSecondLoadBalancer gives the cluster two load balancers and moves Services and nodes between them.
func addSecondLoadBalancer(d *scheduleBuilder) {
	selects := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	other := config.LoadBalancerConfiguration{Name: secondName}
	kind := d.IntN(4)
	d.hasSelector = kind < 2
	switch kind {
	case 0:
		other.ServiceNamespaceSelector = selects("team", "blog")
	case 1:
		other.ServiceLabelSelector = selects("tier", "front")
	}
	if d.IntN(2) == 0 {
		other.NodeSelector = selects("pool", "large")
	}
	d.addConfig(func(c *config.Config) {
		c.Configurations = []config.LoadBalancerConfiguration{{Name: clusterName}, other}
	})
	d.twoLoadBalancers = true
	for range 6 + d.IntN(6) {
		d.addMove(pickOne(d, serviceNames...), d.IntN(4))
	}
}

// addMove changes the placement of a Service, namespace or node.
func (b *scheduleBuilder) addMove(name string, node int) {
	on := b.IntN(2) == 0
	mark := func(labels map[string]string, key, value string) map[string]string {
		if !on {
			delete(labels, key)
			return labels
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		return labels
	}
	switch b.IntN(7) {
	case 0, 1:
		names := pickOne(b, "", clusterName, "Second,"+clusterName)
		if !b.hasSelector { // a Service without an eligible load balancer is rejected
			names = pickOne(b, names, secondName)
		}
		b.addStep(func(s *Stage) error {
			return s.ChangeService(name, func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-configurations", names) })
		}, "Service %s may be on %q", name, names)
	case 2:
		b.addStep(func(s *Stage) error {
			return s.ChangeService(name, func(svc *corev1.Service) { svc.Labels = mark(svc.Labels, "tier", "front") })
		}, "Service %s has the label tier=front: %t", name, on)
	case 3:
		namespace := parseKey(name).Namespace
		b.addStep(func(s *Stage) error {
			return s.ChangeNamespace(namespace, func(n *corev1.Namespace) { n.Labels = mark(n.Labels, "team", "blog") })
		}, "namespace %s has the label team=blog: %t", namespace, on)
	case 4:
		b.addStep(func(s *Stage) error {
			return s.ChangeNode(node, func(n *corev1.Node) { n.Labels = mark(n.Labels, "pool", "large") })
		}, "node %d has the label pool=large: %t", node, on)
	case 5:
		to := pickOne(b, clusterName, secondName)
		b.addStep(func(s *Stage) error {
			return s.ChangeNode(node, func(n *corev1.Node) { n.Labels = mark(n.Labels, placementLabel, to) })
		}, "somebody labels node %d as on %s: %t", node, to, on)
	default:
		pool := pickOne(b, "weir-system/nodes.second", "shop/web.second", "blog/web.second")
		b.addStep(func(s *Stage) error { return s.DeletePool(pool) }, "somebody deletes BackendPool %s", pool)
	}
}

// recordedPlacement returns the recorded load balancer, or internal twin, of a Service. Another check
// verifies the record.
func (o objects) recordedPlacement(svc *corev1.Service) string {
	if len(o.configurations) == 0 {
		return clusterName
	}
	return strings.TrimSuffix(svc.Annotations[placementLabel], "-internal")
}

// checkPlacements checks the recorded placements of Services and nodes.
func (o objects) checkPlacements() []error {
	var errs []error
	for i := range o.services {
		svc := &o.services[i]
		if may := o.eligibleForService(svc); isManaged(svc) && len(o.configurations) > 0 && !slices.Contains(may, o.recordedPlacement(svc)) {
			errs = append(errs, fmt.Errorf("%s/%s is on %q, and may be on %v", svc.Namespace, svc.Name, svc.Annotations[placementLabel], may))
		}
	}
	for i := range o.nodes {
		n := &o.nodes[i]
		if _, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]; excluded || len(o.configurations) == 0 {
			continue
		}
		if may := o.eligibleForNode(n); !slices.Contains(may, n.Labels[placementLabel]) {
			errs = append(errs, fmt.Errorf("node %s is on %q, and may be on %v", n.Name, n.Labels[placementLabel], may))
		}
	}
	return errs
}

// eligibleForService returns the eligible load balancers of a Service: the named ones that select it, else
// those without a selector.
func (o objects) eligibleForService(svc *corev1.Service) []string {
	asks := strings.ToLower(svc.Annotations[annotation+"azure-load-balancer-configurations"])
	var chosen, free []string
	for _, c := range o.configurations {
		switch {
		case asks != "" && !slices.Contains(strings.Split(asks, ","), c.Name):
		case c.ServiceLabelSelector == nil && c.ServiceNamespaceSelector == nil:
			free = append(free, c.Name)
		case matchesSelector(c.ServiceLabelSelector, svc.Labels) && matchesSelector(c.ServiceNamespaceSelector, o.namespaces[svc.Namespace].Labels):
			chosen = append(chosen, c.Name)
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	return free
}

// eligibleForNode returns the eligible load balancers of a node.
func (o objects) eligibleForNode(n *corev1.Node) []string {
	var chosen, free []string
	for _, c := range o.configurations {
		switch {
		case c.NodeSelector == nil:
			free = append(free, c.Name)
		case matchesSelector(c.NodeSelector, n.Labels):
			chosen = append(chosen, c.Name)
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	return free
}

func matchesSelector(by *metav1.LabelSelector, got map[string]string) bool {
	if by == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(by)
	return err == nil && selector.Matches(labels.Set(got))
}
