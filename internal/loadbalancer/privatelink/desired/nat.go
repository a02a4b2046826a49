// SPDX-License-Identifier: Apache-2.0

package desired

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
	var addresses []lb.NATAddress
	for i := range l.Count {
		nat := lb.NATAddress{Name: fmt.Sprintf("dynamic-%d", i), Subnet: subnet, Primary: i == 0}
		if i < len(l.Addresses) {
			nat.Name, nat.Address, nat.Static = "static-"+l.Addresses[i].String(), l.Addresses[i], true
		}
		addresses = append(addresses, nat)
	}
	return addresses
}

// isSameNAT ignores names, and which dynamic address is primary.
func isSameNAT(current, want []lb.NATAddress) bool {
	if len(current) != len(want) {
		return false
	}
	_, missing := matchExisting(current, want)
	if len(missing) > 0 {
		return false
	}
	at := slices.IndexFunc(current, func(n lb.NATAddress) bool { return n.Primary })
	first := want[0]
	return !first.Static || at >= 0 && current[at].Static && current[at].Address == first.Address
}

// matchExisting assigns existing addresses, and returns the indexes of wanted ones without.
func matchExisting(current, want []lb.NATAddress) (next []lb.NATAddress, missing []int) {
	used := make([]bool, len(current))
	free := func(w lb.NATAddress) int {
		for i, n := range current {
			if !used[i] && n.Static == w.Static && (!w.Static || n.Address == w.Address) && strings.EqualFold(n.Subnet, w.Subnet) {
				return i
			}
		}
		return -1
	}
	for i, w := range want {
		at := free(w)
		if at < 0 {
			next, missing = append(next, w), append(missing, i)
			continue
		}
		used[at] = true
		next = append(next, current[at])
	}
	return next, missing
}

// mergeNAT keeps existing names: Azure treats a renamed address as a new one, which changes the
// source of consumers' flows.
func mergeNAT(current, want []lb.NATAddress) []lb.NATAddress {
	if isSameNAT(current, want) {
		return current
	}
	next, missing := matchExisting(current, want)
	for _, i := range missing {
		base := next[i].Name
		for n := 2; hasName(current, next[i].Name) || hasName(next[:i], next[i].Name); n++ {
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

func hasName(addresses []lb.NATAddress, name string) bool {
	return slices.ContainsFunc(addresses, func(n lb.NATAddress) bool { return strings.EqualFold(n.Name, name) })
}

// firstInvalidAddress requires known prefixes.
func firstInvalidAddress(nat []lb.NATAddress, subnet *lb.Subnet) netip.Addr {
	for _, n := range nat {
		if n.Static && subnet != nil && len(subnet.Prefixes) > 0 &&
			!slices.ContainsFunc(subnet.Prefixes, func(p netip.Prefix) bool { return p.Contains(n.Address) }) {
			return n.Address
		}
	}
	return netip.Addr{}
}

func formatNAT(addresses []lb.NATAddress) string {
	var texts []string
	for _, n := range addresses {
		text := "any"
		if n.Static {
			text = n.Address.String()
		}
		if n.Primary && n.Static {
			text += " (primary)"
		}
		texts = append(texts, text)
	}
	if len(addresses) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ") + " of subnet " + addresses[0].Subnet[strings.LastIndex(addresses[0].Subnet, "/")+1:]
}
