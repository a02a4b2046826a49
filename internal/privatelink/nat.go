// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// natAddresses puts static addresses first.
func natAddresses(l service.PrivateLink, subnet string) []lb.NATAddress {
	var all []lb.NATAddress
	for i := range l.Count {
		nat := lb.NATAddress{Name: fmt.Sprintf("dynamic-%d", i), Subnet: subnet, Primary: i == 0}
		if i < len(l.Addresses) {
			nat.Name, nat.Address, nat.Static = "static-"+l.Addresses[i].String(), l.Addresses[i], true
		}
		all = append(all, nat)
	}
	return all
}

// sameNAT ignores names, and which dynamic address is primary.
func sameNAT(is, want []lb.NATAddress) bool {
	if len(is) != len(want) {
		return false
	}
	_, left := reused(is, want)
	if len(left) > 0 {
		return false
	}
	at := slices.IndexFunc(is, func(n lb.NATAddress) bool { return n.Primary })
	first := want[0]
	return !first.Static || at >= 0 && is[at].Static && is[at].Address == first.Address
}

// reused assigns existing addresses, and returns the indexes of wanted ones without.
func reused(is, want []lb.NATAddress) (next []lb.NATAddress, left []int) {
	used := make([]bool, len(is))
	free := func(w lb.NATAddress) int {
		for i, n := range is {
			if !used[i] && n.Static == w.Static && (!w.Static || n.Address == w.Address) && strings.EqualFold(n.Subnet, w.Subnet) {
				return i
			}
		}
		return -1
	}
	for i, w := range want {
		at := free(w)
		if at < 0 {
			next, left = append(next, w), append(left, i)
			continue
		}
		used[at] = true
		next = append(next, is[at])
	}
	return next, left
}

// nextNAT keeps existing names: Azure treats a renamed address as a new one, which changes the
// source of consumers' flows.
func nextNAT(is, want []lb.NATAddress) []lb.NATAddress {
	if sameNAT(is, want) {
		return is
	}
	next, left := reused(is, want)
	for _, i := range left {
		base := next[i].Name
		for n := 2; named(is, next[i].Name) || named(next[:i], next[i].Name); n++ {
			next[i].Name = fmt.Sprintf("%s-%d", base, n)
		}
	}
	primary := 0
	if !want[0].Static { // any may be primary: keep the current one
		primary = max(0, slices.IndexFunc(next, func(n lb.NATAddress) bool { return n.Primary }))
	}
	for i := range next {
		next[i].Primary = i == primary
	}
	return next
}

func named(all []lb.NATAddress, name string) bool {
	return slices.ContainsFunc(all, func(n lb.NATAddress) bool { return strings.EqualFold(n.Name, name) })
}

// outside requires known prefixes.
func outside(nat []lb.NATAddress, subnet *lb.Subnet) netip.Addr {
	for _, n := range nat {
		if n.Static && subnet != nil && len(subnet.Prefixes) > 0 &&
			!slices.ContainsFunc(subnet.Prefixes, func(p netip.Prefix) bool { return p.Contains(n.Address) }) {
			return n.Address
		}
	}
	return netip.Addr{}
}

func showNAT(all []lb.NATAddress) string {
	var texts []string
	for _, n := range all {
		text := "any"
		if n.Static {
			text = n.Address.String()
		}
		if n.Primary && n.Static {
			text += " (primary)"
		}
		texts = append(texts, text)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ") + " of subnet " + all[0].Subnet[strings.LastIndex(all[0].Subnet, "/")+1:]
}
