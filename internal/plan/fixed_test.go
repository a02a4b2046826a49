// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"testing"

	"weir.dev/weir/internal/lb"
)

func TestFixed(t *testing.T) {
	has, due := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.9")
	want := lb.Frontend{Name: "a", Family: lb.IPv4, Subnet: "/s"}
	named := want
	named.Static, named.PrivateIP = true, netip.MustParseAddr("10.0.0.8")
	is := func(static bool, subnet string) []lb.Frontend {
		return []lb.Frontend{{Name: "A", Family: lb.IPv4, Subnet: subnet, PrivateIP: has, Static: static}}
	}
	for about, tt := range map[string]struct {
		want lb.Frontend
		has  []lb.Frontend
		owes bool
		ip   netip.Addr
	}{
		"any address":                   {want: want},
		"it has one":                    {want: want, has: is(true, "/S"), owes: true, ip: has},
		"it has one that Azure chose":   {want: want, has: is(false, "/s"), owes: true},
		"it has one of another subnet":  {want: want, has: is(true, "/other"), owes: true},
		"it is owed one":                {want: want, owes: true, ip: due},
		"it is owed one, and names one": {want: named, owes: true, ip: named.PrivateIP},
		"it has one, and names another": {want: named, has: is(true, "/s"), ip: named.PrivateIP},
		"it is public":                  {want: lb.Frontend{Name: "a", PublicIP: "/p"}, owes: true},
	} {
		owed := func(lb.Frontend) (netip.Addr, bool) { return due, tt.owes }
		if got := Fixed(tt.want, "a", lb.LoadBalancer{Frontends: tt.has}, owed); got.PrivateIP != tt.ip || got.Static != tt.ip.IsValid() {
			t.Errorf("%s: %+v", about, got)
		}
	}
	if got := Fixed(want, "a", lb.LoadBalancer{}, nil); got.Static {
		t.Errorf("nothing is owed: %+v", got)
	}
}
