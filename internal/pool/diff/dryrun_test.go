// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// Interfaces of wanted nodes join, and managed interfaces of other nodes leave. Machines without a
// node stay.
func TestRehearseMembers(t *testing.T) {
	ips := map[string]netip.Addr{"n1": netip.MustParseAddr("10.0.0.1"), "n2": netip.MustParseAddr("10.0.0.2"), "n3": netip.MustParseAddr("10.0.0.3")}
	nics := func(names string) lb.Pool {
		p := lb.Pool{NIC: names != ""}
		for name := range strings.FieldsSeq(names) {
			p.Addresses = append(p.Addresses, lb.Address{Name: "rg_" + name + "nicip", Interface: "/nics/" + name, Machine: name})
		}
		return p
	}
	addresses := lb.Pool{ID: lb.PoolID{Name: "kubernetes"}, Addresses: []lb.Address{{IP: ips["n1"]}}}
	for _, tt := range []struct {
		about            string
		observed         lb.Pool
		wanted, own      string
		want, next, fail string
	}{
		{"in sync", nics("n1 n2"), "n1 n2", "n1 n2", "n1 n2", "n1 n2", ""},
		{"one joins", nics("n1"), "n1 n2", "n1 n2", "n1", "n1 n2", ""},
		{"all do", nics(""), "n1 n2", "n1 n2", "", "n1 n2", ""},
		{"one leaves", nics("n1 n3"), "n1", "n1 n2 n3", "n1 rg_n3nicip", "n1", ""},
		{"one that is not ours does not", nics("n1 n3"), "n1", "n1", "n1 rg_n3nicip", "n1 rg_n3nicip", ""},
		{"one of no node does not", nics("n1 bastion"), "n1", "n1", "n1 rg_bastionnicip", "n1 rg_bastionnicip", ""},
		{"the last leaves", nics("n1"), "", "n1", "rg_n1nicip", "", ""},
		{"addresses", addresses, "n1", "n1", "", "", "pool kubernetes holds IP addresses"},
	} {
		want := Desired{
			IsOwnAddress: func(ip netip.Addr) bool { return strings.Contains(tt.own, "n"+ip.String()[len(ip.String())-1:]) },
			AddressOf:    func(machine string) (netip.Addr, bool) { ip, ok := ips[machine]; return ip, ok },
		}
		for name := range strings.FieldsSeq(tt.wanted) {
			want.Addresses = append(want.Addresses, lb.Address{Name: name, IP: ips[name]})
		}
		before, next, err := DryRunMembers(tt.observed, want)
		if tt.fail != "" {
			if err == nil || !strings.HasPrefix(err.Error(), tt.fail) {
				t.Errorf("%s: %v", tt.about, err)
			}
			continue
		}
		names := func(p lb.Pool) string {
			var members []string
			for _, a := range p.Addresses {
				members = append(members, a.Name)
			}
			return strings.Join(members, " ")
		}
		if err != nil || names(before) != tt.want || names(next) != tt.next {
			t.Errorf("%s: %q becomes %q, %v; want %q, %q", tt.about, names(before), names(next), err, tt.want, tt.next)
		}
	}
}
