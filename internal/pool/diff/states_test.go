// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"testing"

	"weir.dev/weir/internal/lb"
)

// After a success Azure has to show what was written.
func TestStatesThatAzureForgets(t *testing.T) {
	written := Change{Next: lb.Pool{NIC: true, Addresses: []lb.Address{{Interface: "/NIC/1", IP: netip.MustParseAddr("10.0.0.1"), AdminState: lb.Down}}}}
	written.recordState(netip.MustParseAddr("10.0.0.1"), lb.Down)
	for state, arrived := range map[string]bool{lb.Down: true, "": false, lb.None: false} {
		shown := lb.Pool{NIC: true, Addresses: []lb.Address{{Interface: "/nic/1", AdminState: state}}}
		if written.IsAppliedIn(copyAddresses(shown, written.Next)) != arrived {
			t.Errorf("%q: %v", state, !arrived)
		}
	}
}

// A machine outside the cluster does not hide those after it.
func TestUnattachedInterfaceHidesNoOther(t *testing.T) {
	own := netip.MustParseAddr("10.0.0.1")
	c := computeStates(lb.Pool{Addresses: []lb.Address{{Machine: "somebody-elses"}, {Machine: "ours"}}}, Desired{
		Addresses: []lb.Address{{IP: own, AdminState: lb.Down}},
		AddressOf: func(machine string) (netip.Addr, bool) { return own, machine == "ours" },
	}, nil)
	if got := c.Next.Addresses; got[0].AdminState != "" || got[1].AdminState != lb.Down {
		t.Errorf("got %+v", got)
	}
}
