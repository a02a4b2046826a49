// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"

	"weir.dev/weir/internal/lb"
)

// ErrAddressTaken means a Service of another namespace has the address.
var ErrAddressTaken = errors.New("the address is that of a Service of another namespace, and only Services of one namespace share an address")

const takenAdvice = "Choose another address, or have both in one namespace"

// spellPlace returns the address of a frontend for a message, or its name if the address is unknown.
func (in Input) spellPlace(f lb.Frontend) string {
	if in.AddressAt != nil {
		if at := in.AddressAt(place(f)); at != "" {
			return at
		}
	}
	return "frontend " + f.Name
}

// intrudes rejects a Service that requests an address of another namespace: sharing would let it close the
// address, delay its removal or take its ports. Existing sharing continues. A frontend to be released still
// counts until the release is written. A frontend belongs to its Service's namespace even without rules,
// because every port may have the no_lb_rule annotation.
func (d *docket) intrudes(s Share, accepted *seats) error {
	mine := d.namespaceOf(s.Owner)
	if mine == "" {
		return nil
	}
	for _, f := range s.Frontends {
		at := place(f)
		if slices.ContainsFunc(d.there[at], func(r seat) bool { return owns(s.Owner, r.Name) }) {
			continue
		}
		if slices.ContainsFunc(d.frontends[at], func(name string) bool { return owns(s.Owner, name) }) {
			continue
		}
		if err := d.retainsForOther(at, mine); err != nil {
			return err
		}
		rules := d.there[at]
		for _, i := range accepted.at[at] {
			rules = append(rules[:len(rules):len(rules)], accepted.all[i])
		}
		for _, other := range rules {
			if theirs := d.namespaceOf(other.Name); theirs == "" || theirs == mine || owns(s.Owner, other.Name) {
				continue
			}
			return fmt.Errorf("%w: %s has %s. %s", ErrAddressTaken, d.called(other), d.spellPlace(f), takenAdvice)
		}
		for _, name := range append(slices.Clone(d.frontends[at]), accepted.frontends[at]...) {
			if theirs := d.namespaceOf(name); theirs != "" && theirs != mine {
				return fmt.Errorf("%w: frontend %s of Service %s has %s. %s", ErrAddressTaken, name, d.ServiceOf(name), d.spellPlace(f), takenAdvice)
			}
		}
	}
	return nil
}
