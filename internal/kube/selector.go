// SPDX-License-Identifier: Apache-2.0

package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"weir.dev/weir/internal/service"
)

// Requirement is one of a selector's expressions.
type Requirement struct {
	Key      string
	Operator string // In, NotIn, Exists or DoesNotExist
	Values   []string
}

// Selector returns what selects by labels as Kubernetes does.
func Selector(matchLabels map[string]string, expressions []Requirement) (service.Selector, error) {
	s := &metav1.LabelSelector{MatchLabels: matchLabels}
	for _, e := range expressions {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	return func(on map[string]string) bool { return selector.Matches(labels.Set(on)) }, nil
}
