// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// Frontends and public IPs of load balancers that lack zones are listed if their region has zones. Zones that cannot be
// read, or that azure.json names and the region does not have, are named.
func TestZones(t *testing.T) {
	private := func(name string, zones ...string) lb.Frontend {
		return lb.Frontend{Name: name, Subnet: "/subnet", Zones: zones}
	}
	onLB := func(b lb.LoadBalancer, frontends ...lb.Frontend) lb.LoadBalancer {
		b.ID.Name, b.Location, b.Frontends = "kubernetes-internal", "East US", frontends
		return b
	}
	ip := func(sku lb.SKU, usedBy string, zones ...string) lb.PublicIP {
		return lb.PublicIP{ID: lb.ResourceID{Name: "i"}, Location: "eastus", SKU: sku, UsedBy: usedBy, Zones: zones, Address: netip.MustParseAddr("198.18.0.3")}
	}
	const used = "/x/Microsoft.Network/loadBalancers/kubernetes/frontendIPConfigurations/a1"
	standard := lb.LoadBalancer{SKU: lb.Standard}
	zoned := armemu.Options{Zones: []string{"1", "2", "3"}}
	denied := armemu.Options{Role: &armemu.Role{Actions: []string{"Microsoft.Network/loadBalancers/read"}}}
	for about, tt := range map[string]struct {
		more     string
		opts     armemu.Options
		balancer lb.LoadBalancer
		ip       lb.PublicIP
		want     Result
		reason   string
	}{
		"all have zones":          {"", zoned, onLB(standard, private("a", "1"), lb.Frontend{Name: "p", PublicIP: "/ip"}), ip(lb.Standard, used, "2"), OK, "no frontend and no public IP"},
		"a frontend and an IP":    {"", zoned, onLB(standard, private("a"), private("b", "1")), ip(lb.Standard, used), Warn, "frontend a of load balancer kubernetes-internal, public IP i (198.18.0.3)"},
		"a region without zones":  {"", armemu.Options{}, onLB(standard, private("a")), ip(lb.Standard, used), OK, "no frontend"},
		"Basic":                   {"", zoned, onLB(lb.LoadBalancer{SKU: lb.Basic}, private("a")), ip(lb.Basic, used), OK, "no frontend"},
		"an edge zone":            {"", zoned, onLB(lb.LoadBalancer{SKU: lb.Standard, ExtendedLocation: "losangeles"}, private("a")), ip(lb.Standard, used, "1"), OK, "no frontend"},
		"an IP of an edge zone":   {"", zoned, onLB(standard), lb.PublicIP{ID: lb.ResourceID{Name: "i"}, Location: "eastus", SKU: lb.Standard, UsedBy: used, ExtendedLocation: "losangeles"}, OK, "no frontend"},
		"an IP of a machine":      {"", zoned, onLB(standard), ip(lb.Standard, "/x/networkInterfaces/n/ipConfigurations/ip"), OK, "no frontend"},
		"no right":                {"", denied, onLB(standard), ip(lb.Standard, ""), Warn, "403 AuthorizationFailed"},
		"no right, and named":     {`,"availabilityZones":["1"]`, denied, onLB(standard, private("a")), ip(lb.Standard, ""), OK, "not compared with those of the region"},
		"none wanted":             {`,"availabilityZones":[]`, denied, onLB(standard, private("a")), ip(lb.Standard, used), OK, "requests none"},
		"azure.json has no such":  {`,"availabilityZones":["7"]`, zoned, onLB(standard), ip(lb.Standard, used, "1"), Fail, "availabilityZones in azure.json names zone 7, and region eastus has zones 1, 2, 3"},
		"azure.json and no zones": {`,"availabilityZones":["1"]`, armemu.Options{}, onLB(standard), ip(lb.Standard, used, "1"), Fail, "region eastus has no zones"},
	} {
		server := httptest.NewServer(patient.Watch(t, armemu.New(tt.opts)))
		a := azureAt(t, server, `,"location":"eastus"`+tt.more)
		a.loadBalancers, a.ips = []lb.LoadBalancer{tt.balancer}, []lb.PublicIP{tt.ip}
		got := a.checkZones(t.Context())[0]
		if got.Result != tt.want || !strings.Contains(got.Why, tt.reason) || (got.Fix != "") != (tt.want != OK) {
			t.Errorf("%s: %+v", about, got)
		}
		a.loadBalancers = nil
		if got := a.checkZones(t.Context())[0]; tt.more == "" && got.Result == OK {
			t.Errorf("%s, without a list: %+v", about, got)
		}
		server.Close()
	}
}

// Without securityGroupName the doctor warns: a Standard load balancer may be closed.
func TestNoSecurityGroup(t *testing.T) {
	emu := patient.Watch(t, armemu.New(armemu.Options{}))
	server := httptest.NewServer(emu)
	defer server.Close()
	got := azureAt(t, server, "").checkSecurityGroup()(t.Context())[0]
	if got.Result != Warn || !strings.Contains(got.Why, "names no securityGroupName") || !strings.Contains(got.Fix, "set securityGroupName") {
		t.Errorf("%+v", got)
	}
	if err := emu.Put("/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/networkSecurityGroups/g", []byte(`{"location":"eastus"}`)); err != nil {
		t.Fatal(err)
	}
	if got := azureAt(t, server, `,"securityGroupName":"g"`).checkSecurityGroup()(t.Context())[0]; got.Result != OK {
		t.Errorf("%+v", got)
	}
}
