// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// ErrAddressTaken means a Service of another namespace has the address.
var ErrAddressTaken = errors.New("the address is that of a Service of another namespace, and only Services of one namespace share an address")

const addressAdvice = "Choose another address, or have both in one namespace"

// placeText returns the address of a frontend for a message, or its name if the address is unknown.
func (in Input) placeText(f lb.Frontend) string {
	if in.AddressAt != nil {
		if at := in.AddressAt(placeOf(f)); at != "" {
			return at
		}
	}
	return "frontend " + f.Name
}

// checkNamespace rejects a Service that requests an address of another namespace: sharing would let it close the
// address, delay its removal or take its ports. Existing sharing continues. A frontend to be released still
// counts until the release is written. A frontend belongs to its Service's namespace even without rules,
// because every port may have the no_lb_rule annotation.
func (a *admission) checkNamespace(s ServiceParts, accepted *ruleIndex) error {
	namespace := a.namespaceOf(s.Owner)
	if namespace == "" {
		return nil
	}
	for _, f := range s.Frontends {
		at := placeOf(f)
		if slices.ContainsFunc(a.observedRules[at], func(r placedRule) bool { return hasOwner(s.Owner, r.Name) }) {
			continue
		}
		if slices.ContainsFunc(a.frontends[at], func(name string) bool { return hasOwner(s.Owner, name) }) {
			continue
		}
		if err := a.checkRetainedAddress(at, namespace); err != nil {
			return err
		}
		if err := a.checkRetainedFor(f, namespace); err != nil {
			return err
		}
		rules := a.observedRules[at]
		for _, i := range accepted.at[at] {
			rules = append(rules[:len(rules):len(rules)], accepted.all[i])
		}
		for _, other := range rules {
			if otherNamespace := a.namespaceOf(other.Name); otherNamespace == "" || otherNamespace == namespace || hasOwner(s.Owner, other.Name) {
				continue
			}
			return fmt.Errorf("%w: %s has %s. %s", ErrAddressTaken, a.ruleText(other), a.placeText(f), addressAdvice)
		}
		for _, name := range append(slices.Clone(a.frontends[at]), accepted.frontends[at]...) {
			if otherNamespace := a.namespaceOf(name); otherNamespace != "" && otherNamespace != namespace {
				return fmt.Errorf("%w: frontend %s of %s has %s. %s", ErrAddressTaken, name, service.DescribeOwner(a.ServiceOf(name)), a.placeText(f), addressAdvice)
			}
		}
	}
	return nil
}
