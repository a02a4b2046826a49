// SPDX-License-Identifier: Apache-2.0

package cache

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// NewSelector converts a label selector.
func NewSelector(s *metav1.LabelSelector) (service.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	return func(on map[string]string) bool { return selector.Matches(labels.Set(on)) }, nil
}

// NodesOn selects the nodes of a load balancer: all nodes unless there are several.
func NodesOn(loadBalancer string, configurations []service.Configuration) metav1.LabelSelector {
	conf, ok := service.ConfigurationOf(loadBalancer, configurations)
	if !ok {
		return metav1.LabelSelector{}
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{metadata.PlaceLabel: PlaceValue(conf.Name)}}
}

// SelectNone selects no node.
func SelectNone() metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: metav1.LabelSelectorOpExists}, {Key: corev1.LabelHostname, Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
}

// SelectsNoNodes reports whether a BackendPool of nodes must remove its members.
func SelectsNoNodes(p *v1alpha1.BackendPool) bool {
	return p.Spec.Nodes != nil && HasSelector(p, SelectNone())
}

// PlaceNames returns the configuration names by label value.
func PlaceNames(configurations []service.Configuration) map[string]string {
	names := map[string]string{}
	for _, c := range configurations {
		names[PlaceValue(c.Name)] = c.Name
	}
	return names
}

// HasSelector reports whether a BackendPool of nodes has this selector; true for one of a Service.
func HasSelector(p *v1alpha1.BackendPool, want metav1.LabelSelector) bool {
	return p.Spec.Nodes == nil || equality.Semantic.DeepEqual(p.Spec.Nodes.Selector, want)
}
