// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strings"
)

// notPublic are the ranges that no load balancer in front of this one has its address in: those
// of private networks, of machines themselves, of Azure's own services at 168.63.129.16, and of
// groups.
// https://www.iana.org/assignments/iana-ipv4-special-registry
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
}

// global is where all public addresses of IPv6 are.
var global = netip.MustParsePrefix("2000::/3")

// public reports whether an address can be that of a public load balancer. All others are
// nodes', pods' and machines' of private networks, and closed or open for reasons of theirs.
func public(a netip.Addr) bool {
	if !a.Is4() {
		return global.Contains(a)
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// mostNamed bounds what is read of an annotation whose Service is not looked at.
const mostNamed = 100

// AdditionalOf returns the addresses that a value of the annotation AdditionalIPs names, as far
// as a Service may name them.
func AdditionalOf(value string) []netip.Addr {
	var all []netip.Addr
	for _, text := range strings.SplitN(value, ",", mostNamed+1)[:min(mostNamed, strings.Count(value, ",")+1)] {
		if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && public(a) {
			all = append(all, a)
		}
	}
	return all
}
