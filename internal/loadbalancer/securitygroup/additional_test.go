// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/service"
)

// An address is opened for at most one Service that names it, for none if it has another owner, and for the
// first one as long as it names it.
func TestAnAdditionalAddressIsOneServicesAlone(t *testing.T) {
	address := rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom4([4]byte{20, 0, 0, byte(rapid.IntRange(1, 4).Draw(t, "address"))})
	})
	several := rapid.SliceOfN(address, 0, 3)
	names := []string{"a/1", "b/2", "c/3"}
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(address, 0, 1).Draw(t, "nodes")
		var there []ExposedService
		known := map[string]Demand{}
		for _, name := range names {
			if rapid.Bool().Draw(t, name+" is known") {
				known[name] = Demand{Service: name, Desired: &service.Spec{Access: service.Access{Additional: several.Draw(t, "names")}}, Addresses: rapid.SliceOfN(address, 0, 1).Draw(t, "has")}
				continue
			}
			there = append(there, ExposedService{Service: name, Additional: several.Draw(t, "names"), Addresses: rapid.SliceOfN(address, 0, 1).Draw(t, "shows")})
		}
		holds := rapid.MapOf(address, rapid.SampledFrom(names)).Draw(t, "holds")
		n := newAddressOwners(nodes, there, known, holds)
		for a, named := range n.naming {
			opened := 0
			for _, name := range named {
				if !n.isOpened(name, a) {
					continue
				}
				opened++
				if n.nodes[a] || len(n.serving[a]) > 0 && n.otherOwner(name, a) != "" {
					t.Fatalf("%s is opened for %s, and is %s", a, name, n.otherOwner(name, a))
				}
			}
			if opened > 1 {
				t.Fatalf("%s is opened for %d Services", a, opened)
			}
			for _, name := range named {
				if holds[a] == name && n.otherOwner(name, a) == "" && !n.isOpened(name, a) {
					t.Fatalf("%s was first to name %s, and has it no more", name, a)
				}
			}
		}
	})
}
