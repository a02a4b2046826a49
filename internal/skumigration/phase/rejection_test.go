// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// An address becomes a claim only if waiting won't help. While a load balancer of the migration
// holds it, as during its deletion, it is retried.
func TestRejectedAddressDependencies(t *testing.T) {
	const (
		group    = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/"
		asks     = "IP configuration " + group + "loadBalancers/kubernetes-internal/frontendIPConfigurations/a9 is using the private IP address 10.0.0.9 "
		subnet   = group + "virtualNetworks/v/subnets/nodes"
		deletes  = group + "loadBalancers/kubernetes-internal/frontendIPConfigurations/a9"
		external = group + "loadBalancers/kubernetes/frontendIPConfigurations/a9"
	)
	id := lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes-internal"}
	for about, tt := range map[string]struct {
		code, message string
		after         time.Duration
		owed          bool
	}{
		"the deletion of a load balancer":         {code: "PrivateIPAddressInUse", message: "Private IP address 10.0.0.9 is in use by " + deletes + ".", after: 24 * time.Hour},
		"that of another one of the migration":    {code: "PrivateIPAddressIsAllocated", message: asks + "which is already allocated to resource " + external + ".", after: 24 * time.Hour},
		"a name alone":                            {code: "PrivateIPAddressInUse", message: "Private IP address 10.0.0.9 is in use by load balancer 'kubernetes-internal'.", after: 24 * time.Hour},
		"a machine":                               {code: "PrivateIPAddressIsAllocated", message: asks + "which is already allocated to resource " + group + "networkInterfaces/printer/ipConfigurations/ip.", owed: true},
		"a load balancer of others":               {code: "PrivateIPAddressInUse", message: "10.0.0.9 is in use by " + group + "loadBalancers/theirs/frontendIPConfigurations/f", owed: true},
		"a machine of a scale set":                {code: "PrivateIPAddressIsAllocated", message: asks + "which is already allocated to resource /subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/set/virtualMachines/0/networkInterfaces/n.", owed: true},
		"nothing is named":                        {code: "PrivateIPAddressIsAllocated"},
		"nothing is named for ten minutes":        {code: "PrivateIPAddressIsAllocated", after: 10 * time.Minute, owed: true},
		"the subnet alone is named":               {code: "PrivateIPAddressInUse", message: "10.0.0.9 of subnet " + subnet + " is in use."},
		"it is of no subnet":                      {code: "PrivateIPAddressNotInSubnet", message: "Private static IP address 10.0.0.9 does not belong to the range of subnet prefix " + subnet + ".", owed: true},
		"the subnet is gone":                      {code: "InvalidResourceReference", message: "Resource " + subnet + " referenced by resource " + group + "loadBalancers/kubernetes-internal was not found.", owed: true},
		"the public IP of a load balancer to go":  {code: "PublicIPAddressInUse", message: "Resource " + deletes + " is referencing public IP address " + group + "publicIPAddresses/p that is already allocated to resource " + external + "."},
		"the public IP of another load balancer":  {code: "PublicIPAddressInUse", message: "Resource " + deletes + " is referencing public IP address " + group + "publicIPAddresses/p that is already allocated to resource " + group + "natGateways/n.", owed: true},
		"a public IP, and nothing else, is named": {code: "PublicIPAddressInUse", message: "public IP address " + group + "publicIPAddresses/p is in use"},
	} {
		t.Run(about, func(t *testing.T) {
			a := Address{Frontend: "a9", Family: lb.IPv4, IP: netip.MustParseAddr("10.0.0.9"), Subnet: subnet}
			var seen Snapshot
			if tt.code == "PublicIPAddressInUse" {
				a.Subnet, a.PublicIP = "", group+"publicIPAddresses/p"
				pip, err := lb.ParseResourceID(a.PublicIP, lb.TypePublicIP)
				if err != nil {
					t.Fatal(err)
				}
				seen.PublicIPs = []lb.PublicIP{{ID: pip, SKU: lb.Standard, Static: true}}
			}
			j := Journal{LoadBalancers: []LoadBalancer{
				{ID: id, Addresses: []Address{a}},
				{ID: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}},
			}}
			now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
			j, _ = j.RecordRejection(id, seen, tt.code, tt.message, now)
			j, changed := j.RecordRejection(id, seen, tt.code, tt.message, now.Add(tt.after))
			address := j.LoadBalancers[0].Addresses[0]
			if address.RejectReason == "" || address.IsClaim != tt.owed || changed == (tt.owed && tt.after == 0) {
				t.Errorf("%+v, changed %t", address, changed)
			}
			if s := NextSteps(j, seen); !tt.owed && (s.Phase != PhaseCreate || len(s.Put) != 1 || len(s.WaitReasons) != 1 || !strings.Contains(s.WaitReasons[0], tt.code)) {
				t.Errorf("next is %+v", s)
			}
		})
	}
}

// Rejected addresses are created last, in turn.
func TestRefusedAddressesComeLast(t *testing.T) {
	id := lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "lb"}
	address := func(name string, times int) Address {
		a := Address{Frontend: name, Family: lb.IPv4, IP: netip.MustParseAddr("10.0.0." + name), Subnet: "/s", RejectCount: times}
		if times > 0 {
			a.RejectReason = "x"
		}
		return a
	}
	held := func(a Address) Address {
		a.HolderDeleting = true
		return a
	}
	for _, tt := range []struct {
		addresses []Address
		want      string
	}{
		{[]Address{address("9", 1), address("10", 0), address("11", 0)}, "10 11"},
		{[]Address{address("9", 2), address("10", 1)}, "10"},
		{[]Address{address("9", 2), address("10", 2)}, "9"},
		{[]Address{address("9", 1), held(address("10", 3)), held(address("11", 4))}, "10 11"},
		{[]Address{held(address("9", 1)), address("10", 0)}, "10"},
	} {
		var got []string
		for _, f := range (LoadBalancer{ID: id, Addresses: tt.addresses}).missingFrontends(lb.LoadBalancer{}, Snapshot{}) {
			got = append(got, f.Name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%v, want %s", got, tt.want)
		}
	}
}

// A claim outlives the next migration, until a user gives it up.
func TestClaimsOutliveAMigration(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.9")
	f := lb.Frontend{Name: "A9", Subnet: "/Nodes", Family: lb.IPv4}
	done := Journal{Done: true, LoadBalancers: []LoadBalancer{{Addresses: []Address{
		{Frontend: "a9", IP: ip, Subnet: "/nodes", RejectReason: "x", IsClaim: true},
		{Frontend: "a10", IP: netip.MustParseAddr("10.0.0.10"), Subnet: "/nodes"},
	}}}}
	next := BuildJournal(done, Snapshot{}, nil, "eastus")
	for _, j := range []Journal{done, next, BuildJournal(Journal{Done: true, Claims: next.Claims}, Snapshot{}, nil, "")} {
		if got, owed := j.ClaimFor(f, UserRequests{}); !owed || got != ip || !j.HasClaims(UserRequests{}) {
			t.Errorf("%+v owes %s, %t", j, got, owed)
		}
		for _, other := range []lb.Frontend{{Name: "a9", Subnet: "/other"}, {Name: "a10", Subnet: "/nodes"}} {
			if _, owed := j.ClaimFor(other, UserRequests{}); owed {
				t.Errorf("%+v is owed", other)
			}
		}
		agreed, err := UserRequests{}.ReleaseAddress(j, ip, UserRequest{By: "jane"})
		if err != nil || j.HasClaims(agreed) {
			t.Error(agreed, err)
		}
		if _, owed := j.ClaimFor(f, ParseUserRequests(FormatUserRequests(agreed))); owed {
			t.Error("it is owed though a user has given it up")
		}
	}
	if next.IsOpen() {
		t.Error("what is owed begins a migration")
	}
	open := Journal{LoadBalancers: []LoadBalancer{{Addresses: []Address{{IP: ip, RejectReason: "x"}}}}}
	for about, tt := range map[string]struct {
		j    Journal
		ip   string
		want string
	}{
		"it is waited for":  {open, "10.0.0.9", "waits until Azure has released it"},
		"it is there":       {done, "10.0.0.10", "has not refused it"},
		"nobody knows it":   {done, "10.0.0.11", "no migration has it"},
		"there was nothing": {Journal{}, "10.0.0.9", "no migration has it"},
	} {
		if a, err := (UserRequests{}).ReleaseAddress(tt.j, netip.MustParseAddr(tt.ip), UserRequest{}); err == nil || !strings.Contains(err.Error(), tt.want) || len(a.Releases) > 0 {
			t.Errorf("%s: %v, %v", about, a, err)
		}
	}
}
