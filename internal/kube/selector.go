// SPDX-License-Identifier: Apache-2.0

package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"weir.dev/weir/internal/service"
)

// Selector returns what selects by labels as Kubernetes does.
func Selector(s *metav1.LabelSelector) (service.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	return func(on map[string]string) bool { return selector.Matches(labels.Set(on)) }, nil
}
