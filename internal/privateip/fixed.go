// SPDX-License-Identifier: Apache-2.0

package privateip

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Fixed returns a private frontend that any address will do for with the address that it has, if that is Static: to
// leave it to Azure again would bring nothing, and might bring another one. Where it has none yet it asks for the
// one that it is owed; owed may be nil.
func Fixed(want lb.Frontend, observed lb.LoadBalancer, owed func(lb.Frontend) (netip.Addr, bool)) lb.Frontend {
	if want.Subnet == "" || want.Static {
		return want
	}
	at := slices.IndexFunc(observed.Frontends, func(is lb.Frontend) bool { return strings.EqualFold(is.Name, want.Name) })
	if at >= 0 {
		is := observed.Frontends[at]
		if is.Static && strings.EqualFold(is.Subnet, want.Subnet) && want.Family.Of(is.PrivateIP) {
			want.Static, want.PrivateIP = true, is.PrivateIP
		}
		return want
	}
	if owed != nil {
		if ip, is := owed(want); is {
			want.Static, want.PrivateIP = true, ip
		}
	}
	return want
}
