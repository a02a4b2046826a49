// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// sameFrontend reports whether a frontend is as it shall be. An address that Azure chose
// is as good as any other, and so are zones where none are asked for.
func sameFrontend(is, shall lb.Frontend) bool {
	return strings.EqualFold(is.Name, shall.Name) && strings.EqualFold(is.PublicIP, shall.PublicIP) &&
		strings.EqualFold(is.Subnet, shall.Subnet) && is.Static == shall.Static &&
		(!shall.Static || is.PrivateIP == shall.PrivateIP) &&
		(len(shall.Zones) == 0 || slices.Equal(is.Zones, shall.Zones))
}

func sameProbe(is, shall lb.Probe) bool {
	is.Name, shall.Name = strings.ToLower(is.Name), strings.ToLower(shall.Name)
	return is == shall
}

// sameRule reports whether a rule is as it shall be. What Azure shows of TCP resets where
// there is no TCP counts for nothing.
func sameRule(is, shall lb.Rule) bool {
	reset := shall.TCPReset == nil || is.TCPReset != nil && *is.TCPReset == *shall.TCPReset ||
		is.TCPReset == nil && !*shall.TCPReset
	for _, r := range []*lb.Rule{&is, &shall} {
		r.TCPReset = nil
		r.Name, r.Frontend, r.Pool, r.Probe = strings.ToLower(r.Name), strings.ToLower(r.Frontend), strings.ToLower(r.Pool), strings.ToLower(r.Probe)
	}
	return reset && is == shall
}
