// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// LabelSelector is a label selector as Kubernetes writes it. An empty one selects
// everything; a nil one is none.
type LabelSelector struct {
	MatchLabels      map[string]string  `json:"matchLabels,omitempty"`
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// LabelRequirement is one of the expressions of a LabelSelector.
type LabelRequirement struct {
	Key string `json:"key,omitempty"`
	// Operator is In, NotIn, Exists or DoesNotExist.
	Operator string   `json:"operator,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// takesValues are the operators, and whether they need values; the others must have none.
var takesValues = map[string]bool{"In": true, "NotIn": true, "Exists": false, "DoesNotExist": false}

// Kubernetes's rules for labels:
// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
var (
	labelPrefixRule = regexp.MustCompile(`^[0-9a-z]([0-9a-z-]*[0-9a-z])?(\.[0-9a-z]([0-9a-z-]*[0-9a-z])?)*$`)
	labelNameRule   = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$`)
)

const mostLabelPrefix = 253

// check reports the first part that Kubernetes would not take. key is the selector's path.
func (s *LabelSelector) check(key string) error {
	if s == nil {
		return nil
	}
	for _, label := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if err := checkLabel(key+".matchLabels", label); err != nil {
			return err
		}
		if err := checkLabelValue(key+".matchLabels."+label, s.MatchLabels[label]); err != nil {
			return err
		}
	}
	for i, e := range s.MatchExpressions {
		if err := e.check(fmt.Sprintf("%s.matchExpressions[%d]", key, i)); err != nil {
			return err
		}
	}
	return nil
}

func (e LabelRequirement) check(key string) error {
	takes, known := takesValues[e.Operator]
	switch {
	case !known:
		return fmt.Errorf(`key %q is %q: want "In", "NotIn", "Exists" or "DoesNotExist"`, key+".operator", e.Operator)
	case takes && len(e.Values) == 0:
		return fmt.Errorf("key %q is empty: operator %s needs at least one value", key+".values", e.Operator)
	case !takes && len(e.Values) > 0:
		return fmt.Errorf("key %q is %q: operator %s takes no values: remove them", key+".values", e.Values, e.Operator)
	}
	for i, value := range e.Values {
		if err := checkLabelValue(fmt.Sprintf("%s.values[%d]", key, i), value); err != nil {
			return err
		}
	}
	return checkLabel(key+".key", e.Key)
}

// checkLabel checks the key of a label.
func checkLabel(key, label string) error {
	prefix, name, prefixed := strings.Cut(label, "/")
	if !prefixed {
		prefix, name = "x", label
	}
	if len(prefix) > mostLabelPrefix || !labelPrefixRule.MatchString(prefix) || !labelNameRule.MatchString(name) {
		return fmt.Errorf("key %q: %q is no key of a label: want at most 63 letters, digits, '_', '-' or '.', if need be behind a DNS name and '/'", key, label)
	}
	return nil
}

func checkLabelValue(key, value string) error {
	if value != "" && !labelNameRule.MatchString(value) {
		return fmt.Errorf("key %q is %q: want the value of a label: at most 63 letters, digits, '_', '-' or '.'", key, value)
	}
	return nil
}
