// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
)

// ErrAddressTaken says that the address is that of a Service of another namespace.
var ErrAddressTaken = errors.New("the address is that of a Service of another namespace, and only Services of one namespace share an address")

// intrudes refuses an address to a Service that one of another namespace has: whoever shares
// an address can have it closed, keep its Service from leaving it, and take further ports of
// it. Who shares it already goes on. What is there counts though its Service is due, and lets
// go of it for the plan: it has the address until it is written that it has not.
func (d *docket) intrudes(s Share, taken *seats) error {
	mine := d.namespaceOf(s.Owner)
	if mine == "" {
		return nil
	}
	for _, f := range s.Frontends {
		at := place(f)
		if slices.ContainsFunc(d.there[at], func(r seat) bool { return owns(s.Owner, r.Name) }) {
			continue
		}
		rules := d.there[at]
		for _, i := range taken.at[at] {
			rules = append(rules[:len(rules):len(rules)], taken.all[i])
		}
		for _, other := range rules {
			if theirs := d.namespaceOf(other.Name); theirs == "" || theirs == mine || owns(s.Owner, other.Name) {
				continue
			}
			where := "frontend " + f.Name
			if d.AddressAt != nil && d.AddressAt(at) != "" {
				where = d.AddressAt(at)
			}
			return fmt.Errorf("%w: %s has %s. Choose another address, or have both in one namespace", ErrAddressTaken, d.called(other), where)
		}
	}
	return nil
}
