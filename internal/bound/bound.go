// SPDX-License-Identifier: Apache-2.0

// Package bound computes how much of a shared load balancer or security group one namespace
// may use.
package bound

import (
	"errors"
	"fmt"
	"strconv"
)

// Annotations on a Namespace that set its bounds. Only administrators of the cluster write
// Namespaces; the role edit cannot.
const (
	// MaxRules bounds the load balancing rules, and MaxFrontends the frontends, on each load
	// balancer.
	MaxRules     = "weir.dev/max-rules"
	MaxFrontends = "weir.dev/max-frontends"
	// MaxSecurityRules bounds the rules in the security group.
	MaxSecurityRules = "weir.dev/max-security-rules"
)

// Annotations are all of them.
var Annotations = []string{MaxRules, MaxFrontends, MaxSecurityRules}

// reserveDivisor is the part of a resource that a namespace without neighbors leaves free: a
// tenth, and at least one of what Azure limits. Without it, the first namespace of a cluster could leave nothing for the second one.
const reserveDivisor = 10

// Settings are the bounds that the annotations of one Namespace set. The zero value sets none.
type Settings struct {
	Namespace string
	set       map[string]int
	invalid   map[string]string
}

// Read parses the annotations of a Namespace. An invalid value sets no bound, so the default
// applies.
func Read(namespace string, annotations map[string]string) Settings {
	s := Settings{Namespace: namespace}
	for _, name := range Annotations {
		text, is := annotations[name]
		if !is {
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

// maxValue is how many characters of an invalid value are quoted.
const maxValue = 32

// Keep returns the text of an annotation that is worth caching: no valid value is longer than
// maxValue characters, and an invalid one stays invalid.
func Keep(text string) string {
	if len(text) > maxValue {
		return text[:maxValue] + "…"
	}
	return text
}

// Problems describes the annotations with an invalid value, in the order of Annotations.
func (s Settings) Problems() []string {
	var all []string
	for _, name := range Annotations {
		if text, is := s.invalid[name]; is {
			all = append(all, fmt.Sprintf("Namespace %s: annotation %s is %q: set a whole number of 0 or more, or remove the annotation; until then the default bound applies",
				s.Namespace, name, text))
		}
	}
	return all
}

// IsSet reports whether an annotation sets a bound.
func (s Settings) IsSet() bool { return len(s.set) > 0 }

// Capacity is how much a resource holds.
type Capacity struct {
	Max int
	// By names what sets Max; empty for the limit of Azure.
	By string
}

func (c Capacity) String() string {
	if c.By == "" {
		return fmt.Sprintf("%d, the limit of Azure", c.Max)
	}
	return fmt.Sprintf("%d, %s", c.Max, c.By)
}

// Bound is how much one namespace may use.
type Bound struct {
	Max int
	// By names what sets Max: the default, or an annotation.
	By string
}

// Of returns the bound of a namespace. shared is true if other namespaces use the resource, too.
// The default is half of the capacity if they do, and all but the reserve if they do not.
func (s Settings) Of(annotation string, c Capacity, shared bool) Bound {
	if n, is := s.set[annotation]; is {
		return Bound{min(n, c.Max), fmt.Sprintf("annotation %s of Namespace %s", annotation, s.Namespace)}
	}
	b := Bound{c.Max, "default: " + c.String()}
	reserve := c.Max / reserveDivisor
	if c.By == "" { // what an administrator sets low is meant to be used
		reserve = max(reserve, min(1, c.Max/2))
	}
	switch {
	case shared:
		b = Bound{max(c.Max/2, 1), "default: other namespaces use it, too, so half of " + c.String()}
	case reserve > 0:
		verb := "are"
		if reserve == 1 {
			verb = "is"
		}
		b = Bound{c.Max - reserve, fmt.Sprintf("default: %d %s reserved for other namespaces, of %s", reserve, verb, c)}
	}
	if text, is := s.invalid[annotation]; is {
		b.By += fmt.Sprintf("; annotation %s of Namespace %s is %q, which is not a whole number of 0 or more", annotation, s.Namespace, text)
	}
	return b
}

// Part returns the bound of something that comes with what the annotation bounds, such as the addresses
// in security rules: the default of its capacity c, or the same part of c that the annotation
// sets of its own capacity, if that is more.
func (s Settings) Part(annotation string, of, c Capacity, shared bool) Bound {
	b := Settings{Namespace: s.Namespace, invalid: s.invalid}.Of(annotation, c, shared)
	if n, is := s.set[annotation]; is && of.Max > 0 {
		if part := min(n, of.Max) * c.Max / of.Max; part > b.Max {
			return Bound{part, s.Of(annotation, of, shared).By}
		}
	}
	return b
}

// ErrExceeded marks the rejection of a Service whose namespace would exceed a bound.
var ErrExceeded = errors.New("bound of the namespace exceeded")

// Exceeded returns the rejection: what the namespace would have, of which resource, its bound and
// what sets it.
func Exceeded(namespace string, would int, what, resource string, b Bound, annotation string) error {
	return fmt.Errorf("%w: namespace %s would have %d %s in %s and may have %d (%s). Have the Services of the namespace use fewer, or ask an administrator of the cluster to set annotation %s on Namespace %s",
		ErrExceeded, namespace, would, what, resource, b.Max, b.By, annotation, namespace)
}

// Allows reports whether a namespace may go from one number to another. A number that does not
// grow is allowed even above the bound: what exists is never taken away.
func (b Bound) Allows(was, would int) bool { return would <= max(b.Max, was) }
