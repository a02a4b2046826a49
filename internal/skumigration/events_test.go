// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// Each Service with an address in the journal gets one event at the start and one at the end;
// others get none.
func TestServicesGetMigrationEvents(t *testing.T) {
	w := newWorld()
	w.services = append(w.services, phase.Service{Name: "ns/other", Owner: "a2", LoadBalancer: place, Addresses: []netip.Addr{netip.MustParseAddr("198.18.7.7")}})
	want := []string{
		"ns/web false MigratingLoadBalancer: Its load balancer is Basic, and becomes a Standard one. It is not reached for some minutes, and keeps 198.18.0.1",
		"ns/web false MigratedLoadBalancer: A Standard load balancer has 198.18.0.1; its rules and members follow",
	}
	if !w.run(t) || !slices.Equal(w.told, want) {
		t.Errorf("%q", w.told)
	}
}

// The status of each Service shows the progress. The migration continues if the API server rejects
// it.
func TestServicesShowAMigration(t *testing.T) {
	for _, fails := range []error{nil, errors.New("no rights")} {
		w := newWorld()
		w.showFails = fails
		w.services = append(w.services, phase.Service{Name: "ns/other", Owner: "a2", LoadBalancer: place, Addresses: []netip.Addr{netip.MustParseAddr("198.18.7.7")}})
		var want []string
		for _, step := range []string{"1 of 6, Static", "2 of 6, Detach", "3 of 6, Delete", "4 of 6, Upgrade", "5 of 6, Make"} {
			want = append(want, "ns/web: Its load balancer is Basic, and becomes a Standard one with 198.18.0.1: step "+step+". weir migrate status shows what it waits for")
		}
		if !w.run(t) || !slices.Equal(w.shown, want) {
			t.Errorf("%q", w.shown)
		}
	}
}

// A Service whose address is rejected gets an event; one that shares its load balancer does not.
func TestLostAddressIsReportedOnService(t *testing.T) {
	w := internal(9, 10)
	w.taken(true, "10.0.0.10")
	for _, owner := range []string{"a9", "a10"} {
		w.services = append(w.services, phase.Service{Name: "ns/" + owner, Owner: owner, LoadBalancer: place, Frontends: []lb.Frontend{{Name: owner, Family: lb.IPv4, Subnet: "/subnets/nodes"}}})
	}
	want := []string{
		"ns/a9 false MigratedLoadBalancer: A Standard load balancer has 10.0.0.9; its rules and members follow",
		"ns/a10 true AddressRefused: Azure refuses 10.0.0.10 to its Standard load balancer, and it gets no other address: free what weir migrate status names, or agree to another address with weir migrate give-up 10.0.0.10",
	}
	if !w.run(t) || !slices.Equal(w.told, want) {
		t.Errorf("%q\n%s", w.told, w.said.String())
	}
}
