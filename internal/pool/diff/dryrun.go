// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// DryRunMembers returns a pool of network interfaces before and after its machines join and leave, with nodes' names
// and addresses. observed must have the machine of each interface.
func DryRunMembers(observed lb.Pool, want Desired) (is, next lb.Pool, err error) {
	if err := checkPoolKind(observed, want); err != nil {
		return observed, observed, err
	}
	want = want.limitRetained(findNodes(observed, want))
	names := map[netip.Addr]string{}
	for _, a := range want.Addresses {
		names[a.IP] = a.Name
	}
	is, next = observed, observed
	is.Addresses, next.Addresses = nil, nil
	there := map[netip.Addr]bool{}
	for _, a := range observed.Addresses {
		ip, ofNode := want.nodeAddress(a)
		if ofNode {
			a.IP, a.Name, there[ip] = ip, cmp.Or(names[ip], a.Name), true
		}
		is.Addresses = append(is.Addresses, a)
		ours := ofNode && (slices.Contains(want.Record.Written, ip) || want.IsManaged(ip))
		if _, wanted := names[ip]; wanted || !ours {
			next.Addresses = append(next.Addresses, a)
		}
	}
	for _, a := range want.Addresses {
		if !there[a.IP] {
			next.Addresses = append(next.Addresses, lb.Address{Name: a.Name, IP: a.IP})
		}
	}
	next.NIC = len(next.Addresses) > 0
	return is, next, nil
}
