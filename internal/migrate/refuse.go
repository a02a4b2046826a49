// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Refuse returns the journal after Azure has refused to make the frontends of a load balancer, for good and
// with this code and text, and whether that changes it. An address that somebody else has, or that is of no
// subnet of ours, is given up: a private one, and a public one if a status alone tells of it. If it is not
// clear which one Azure means they are asked for one by one. Any other refusal says nothing about addresses.
func (j Journal) Refuse(id lb.LoadBalancerID, seen Seen, code, text string) (Journal, bool) {
	at := slices.IndexFunc(j.Balancers, func(b Balancer) bool { return b.ID.Key() == id.Key() })
	if at < 0 || !aboutAddresses(code, text) {
		return j, false
	}
	j = j.clone()
	b := &j.Balancers[at]
	has, _ := seen.balancer(id)
	asked := b.missing(has, seen)
	named, changed := addressesIn(text), false
	for i := range b.Addresses {
		a := &b.Addresses[i]
		asks := slices.ContainsFunc(asked, func(f lb.Frontend) bool { return f.Name == a.Frontend })
		if asks && (a.PublicIP == "" || a.Told) && (len(asked) == 1 || named[a.IP]) {
			a.GivenUp, changed = true, true
		}
	}
	if !changed && len(asked) > 1 {
		b.OneByOne, changed = true, true
	}
	return j, changed
}

// aboutAddresses reports whether Azure refuses an address, or its subnet. The reference to a subnet that is not
// there has a code of its own.
func aboutAddresses(code, text string) bool {
	reference := strings.Contains(code, "Reference") && strings.Contains(strings.ToLower(text), "/subnets/")
	return reference || strings.Contains(code, "PrivateIPAddress") || strings.Contains(code, "Subnet") || strings.Contains(code, "PublicIPAddressInUse")
}

// addressesIn returns the IP addresses that a text names.
func addressesIn(text string) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF.:", r) }) {
		if ip, err := netip.ParseAddr(strings.TrimRight(word, ".:")); err == nil {
			all[ip] = true
		}
	}
	return all
}
