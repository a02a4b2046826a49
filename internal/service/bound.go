// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"strconv"
)

// Annotations of a Namespace, which only cluster administrators can write; the role edit cannot.
const (
	// MaxRules and MaxFrontends apply per load balancer.
	MaxRules     = "weir.dev/max-rules"
	MaxFrontends = "weir.dev/max-frontends"
	// MaxSecurityRules limits the rules in the security group.
	MaxSecurityRules = "weir.dev/max-security-rules"
)

// NamespaceAnnotations are all annotations of this package.
var NamespaceAnnotations = []string{MaxRules, MaxFrontends, MaxSecurityRules}

// MaxRetained is how many retained addresses that no Service uses a namespace may have and still get a new one: public IPs,
// and private addresses per load balancer. Otherwise Services that come and go would use up what Azure allows.
const MaxRetained = 20

// reserveDivisor leaves a tenth to future namespaces, and at least one where Azure sets the limit.
const reserveDivisor = 10

// NamespaceSettings are the bounds from the annotations of a Namespace. The zero value has none.
type NamespaceSettings struct {
	Namespace string
	set       map[string]int
	invalid   map[string]string
}

// ParseNamespaceSettings ignores invalid values: the default applies.
func ParseNamespaceSettings(namespace string, annotations map[string]string) NamespaceSettings {
	s := NamespaceSettings{Namespace: namespace}
	for _, name := range NamespaceAnnotations {
		text, ok := annotations[name]
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			if s.invalid == nil {
				s.invalid = map[string]string{}
			}
			s.invalid[name] = text[:min(len(text), maxValue)]
			continue
		}
		if s.set == nil {
			s.set = map[string]int{}
		}
		s.set[name] = int(n)
	}
	return s
}

// maxValue limits the quoted bytes of an invalid value.
const maxValue = 32

// TruncateValue truncates an annotation for the cache; an invalid value remains invalid.
func TruncateValue(text string) string {
	if len(text) > maxValue {
		return text[:maxValue] + "…"
	}
	return text
}

// InvalidMessages describes invalid annotations, in the order of Annotations.
func (s NamespaceSettings) InvalidMessages() []string {
	var messages []string
	for _, name := range NamespaceAnnotations {
		if text, ok := s.invalid[name]; ok {
			messages = append(messages, fmt.Sprintf("Namespace %s: annotation %s is %q: set a whole number of 0 or more, or remove the annotation; until then the default bound applies",
				s.Namespace, name, text))
		}
	}
	return messages
}

// IsSet reports whether any bound is set.
func (s NamespaceSettings) IsSet() bool { return len(s.set) > 0 }

// NamespaceCapacity is the size of a resource.
type NamespaceCapacity struct {
	Max int
	// By is empty for Azure's limit.
	By string
}

func (c NamespaceCapacity) String() string {
	if c.By == "" {
		return fmt.Sprintf("%d, the limit of Azure", c.Max)
	}
	return fmt.Sprintf("%d, %s", c.Max, c.By)
}

// NamespaceBound is the share that one namespace may use.
type NamespaceBound struct {
	Max int
	// By describes the default or the annotation.
	By string
}

// NamespaceBound returns the bound of a namespace. The default is half of a shared capacity, else the capacity
// minus the reserve.
func (s NamespaceSettings) NamespaceBound(annotation string, c NamespaceCapacity, shared bool) NamespaceBound {
	if n, ok := s.set[annotation]; ok {
		return NamespaceBound{min(n, c.Max), fmt.Sprintf("annotation %s of Namespace %s", annotation, s.Namespace)}
	}
	b := NamespaceBound{c.Max, "default: " + c.String()}
	reserve := c.Max / reserveDivisor
	if c.By == "" { // an administrator's limit is meant to be used
		reserve = max(reserve, min(1, c.Max/2))
	}
	switch {
	case shared:
		b = NamespaceBound{max(c.Max/2, 1), "default: other namespaces use it, too, so half of " + c.String()}
	case reserve > 0:
		verb := "are"
		if reserve == 1 {
			verb = "is"
		}
		b = NamespaceBound{c.Max - reserve, fmt.Sprintf("default: %d %s reserved for other namespaces, of %s", reserve, verb, c)}
	}
	if text, ok := s.invalid[annotation]; ok {
		b.By += fmt.Sprintf("; annotation %s of Namespace %s is %q, which is not a whole number of 0 or more", annotation, s.Namespace, text)
	}
	return b
}

// ShareOf returns the bound of a related quantity, e.g. addresses in security rules: the default for
// c, or the annotation's share of base applied to c, if larger.
func (s NamespaceSettings) ShareOf(annotation string, base, c NamespaceCapacity, shared bool) NamespaceBound {
	b := NamespaceSettings{Namespace: s.Namespace, invalid: s.invalid}.NamespaceBound(annotation, c, shared)
	if n, ok := s.set[annotation]; ok && base.Max > 0 {
		if part := min(n, base.Max) * c.Max / base.Max; part > b.Max {
			return NamespaceBound{part, s.NamespaceBound(annotation, base, shared).By}
		}
	}
	return b
}

// ErrBoundExceeded rejects a Service that would exceed a bound of its namespace.
var ErrBoundExceeded = errors.New("bound of the namespace exceeded")

// NewBoundExceededError returns the rejection of a Service.
func NewBoundExceededError(namespace string, would int, noun, resource string, b NamespaceBound, annotation string) error {
	return fmt.Errorf("%w: namespace %s would have %d %s in %s and may have %d (%s). Have the Services of the namespace use fewer, or ask an administrator of the cluster to set annotation %s on Namespace %s",
		ErrBoundExceeded, namespace, would, noun, resource, b.Max, b.By, annotation, namespace)
}

// CanChange permits existing use above the bound, but no growth.
func (b NamespaceBound) CanChange(current, would int) bool { return would <= max(b.Max, current) }
