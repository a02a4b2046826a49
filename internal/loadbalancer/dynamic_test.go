// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// A rejected Service of another namespace does not reserve an address that Azure chose for a
// Service; the user of the address may request it.
func TestAnAddressThatAzureChoseIsNotReservedForAnother(t *testing.T) {
	k := NewPrivateIPManager(PrivateIPConfig{Limit: func(string) int { return 10 }, LoadBalancers: []string{"lb"}, Log: slog.New(slog.DiscardHandler)})
	k.Load(t.Context())
	front := lb.Frontend{Name: "victim", Subnet: "s", PrivateIP: netip.MustParseAddr("10.0.0.7")} // not static
	users := FindPrivateIPUsers(lb.LoadBalancer{Frontends: []lb.Frontend{front}}, func(name string) string { return name + "/web" })
	front.Static = true
	want := func(namespace string) []PrivateIPRequest {
		return []PrivateIPRequest{{Owner: namespace, Service: namespace + "/web", Created: time.Now(), Keys: []string{AddressKey(front)}}}
	}
	k.Reserve(t.Context(), "lb", users, want("attacker"), time.Now())
	k.RecordUsers(t.Context(), "lb", users, time.Now())
	if refused := k.Check(users, want("victim"), time.Now().Add(time.Minute)); len(refused) > 0 {
		t.Errorf("the victim may not request the address that it has: %v", refused)
	}
}
