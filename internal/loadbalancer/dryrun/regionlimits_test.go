// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
)

// A quota is listed if the plan creates what it counts, and at least 80 % would be used.
func TestRegionLimitsOf(t *testing.T) {
	ip := func(location string, family lb.Family, sku lb.SKU) lb.PublicIP {
		return lb.PublicIP{Etag: "1", Location: location, Family: family, SKU: sku}
	}
	ipv4, ipv6, basic, west := ip("East US", lb.IPv4, lb.Standard), ip("eastus", lb.IPv6, lb.Standard), ip("eastus", lb.IPv4, lb.Basic), ip("westus", lb.IPv4, lb.Standard)
	balancer := lb.LoadBalancer{Etag: "1", Location: "eastus", SKU: lb.Standard}
	type (
		ips       = []ResourceChange[lb.PublicIP]
		balancers = []ResourceChange[lb.LoadBalancer]
	)
	usage := func(name string, before, used, limit int) plan.LimitUsage {
		return plan.LimitUsage{Resource: "region eastus", Name: name, Was: before, Used: used, Max: limit}
	}
	quota := func(name string, used, limit int) []plan.RegionUsage {
		return []plan.RegionUsage{{Name: name, Used: used, Max: limit}}
	}
	for _, tt := range []struct {
		about    string
		changes  Changes
		reported []plan.RegionUsage
		want     []plan.LimitUsage
	}{
		{"not near", Changes{PublicIPs: ips{{After: ipv4}}}, quota("PublicIPAddresses", 78, 100), nil},
		{"near", Changes{PublicIPs: ips{{After: ipv4}}}, quota("PublicIPAddresses", 79, 100), []plan.LimitUsage{usage("public IPs", 79, 80, 100)}},
		{"exceeded by both families", Changes{PublicIPs: ips{{After: ipv4}, {After: ipv6}}}, quota("PublicIPAddresses", 9, 10), []plan.LimitUsage{usage("public IPs", 9, 11, 10)}},
		{"IPv4", Changes{PublicIPs: ips{{After: ipv4}, {After: ipv6}, {After: basic}}}, quota("IPv4StandardSkuPublicIpAddresses", 9, 10), []plan.LimitUsage{usage("Standard public IPv4 addresses", 9, 10, 10)}},
		{"IPv6", Changes{PublicIPs: ips{{After: ipv4}, {After: ipv6}}}, quota("IPv6StandardSkuPublicIpAddresses", 9, 10), []plan.LimitUsage{usage("Standard public IPv6 addresses", 9, 10, 10)}},
		{"of another region", Changes{PublicIPs: ips{{After: west}}}, quota("PublicIPAddresses", 9, 10), nil},
		{"modified and deleted", Changes{PublicIPs: ips{{Before: ipv4, After: ipv4}, {Before: ipv4}}}, quota("PublicIPAddresses", 10, 10), nil},
		{"a deletion frees nothing in time", Changes{PublicIPs: ips{{Before: ipv4}, {After: ipv4}}}, quota("PublicIPAddresses", 10, 10), []plan.LimitUsage{usage("public IPs", 10, 11, 10)}},
		{"load balancers", Changes{LoadBalancers: balancers{{After: balancer}, {Before: balancer, After: balancer}}}, quota("LoadBalancers", 9, 10), []plan.LimitUsage{usage("load balancers", 9, 10, 10)}},
		{"Standard load balancers", Changes{LoadBalancers: balancers{{After: balancer}}}, quota("StandardSkuLoadBalancers", 9, 10), []plan.LimitUsage{usage("Standard load balancers", 9, 10, 10)}},
		{"without a quota", Changes{PublicIPs: ips{{After: ipv4}}}, quota("PublicIPAddresses", 10, -1), nil},
	} {
		if got := RegionLimitsOf(tt.changes, "eastus", tt.reported); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.about, got, tt.want)
		}
	}
	d := Changes{PublicIPs: ips{{After: west}, {After: ipv4}, {Before: ipv6, After: ipv6}}, LoadBalancers: balancers{{After: balancer}}}
	if got := d.ListCreatedRegions(); !slices.Equal(got, []string{"eastus", "westus"}) {
		t.Errorf("regions %q", got)
	}
	if got := (Changes{PublicIPs: ips{{Before: ipv4, After: ipv4}}}).ListCreatedRegions(); len(got) > 0 {
		t.Errorf("regions without a new resource: %q", got)
	}
	text := Report{Limits: []plan.LimitUsage{usage("public IPs", 9, 11, 10)}}.FormatText(false)
	if !strings.Contains(text, "! region eastus would have 11 of 10 public IPs. Beyond the quota, Azure rejects new ones") {
		t.Error(text)
	}
}
