// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// checkSelector validates a selector as Kubernetes does; key is its path.
func checkSelector(key string, s *metav1.LabelSelector) error {
	if s == nil {
		return nil
	}
	for _, label := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if err := cmp.Or(checkLabel(key+".matchLabels", label), checkLabelValue(key+".matchLabels."+label, s.MatchLabels[label])); err != nil {
			return err
		}
	}
	for i, e := range s.MatchExpressions {
		if err := checkRequirement(fmt.Sprintf("%s.matchExpressions[%d]", key, i), e); err != nil {
			return err
		}
	}
	return nil
}

func checkRequirement(key string, e metav1.LabelSelectorRequirement) error {
	takes := e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn
	switch {
	case !takes && e.Operator != metav1.LabelSelectorOpExists && e.Operator != metav1.LabelSelectorOpDoesNotExist:
		return fmt.Errorf(`key %q is %q: want "In", "NotIn", "Exists" or "DoesNotExist"`, key+".operator", e.Operator)
	case takes && len(e.Values) == 0:
		return fmt.Errorf("key %q is empty: operator %s needs at least one value", key+".values", e.Operator)
	case !takes && len(e.Values) > 0:
		return fmt.Errorf("key %q is %q: operator %s has no values: remove them", key+".values", e.Values, e.Operator)
	}
	for i, value := range e.Values {
		if err := checkLabelValue(fmt.Sprintf("%s.values[%d]", key, i), value); err != nil {
			return err
		}
	}
	return checkLabel(key+".key", e.Key)
}

func checkLabel(key, label string) error {
	if len(validation.IsQualifiedName(label)) > 0 {
		return fmt.Errorf("key %q: %q is no key of a label: want at most 63 letters, digits, '_', '-' or '.', if need be behind a DNS name and '/'", key, label)
	}
	return nil
}

func checkLabelValue(key, value string) error {
	if len(validation.IsValidLabelValue(value)) > 0 {
		return fmt.Errorf("key %q is %q: want the value of a label: at most 63 letters, digits, '_', '-' or '.'", key, value)
	}
	return nil
}
