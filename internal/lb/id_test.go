// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

func poolID(subscription, group, balancer, pool string) lb.PoolID {
	return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: group, Name: balancer}, Name: pool}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		id       lb.PoolID
		wantText string // empty for valid
	}{
		{poolID("00000000-0000-0000-0000-000000000000", "rg-1_(a).b", "kubernetes", "shop-web"), ""},
		{poolID("s", "g", "l", "p_"), ""},
		{poolID("", "g", "l", "p"), "subscription id"},
		{poolID("s/../x", "g", "l", "p"), "subscription id"},
		{poolID("s", "g.", "l", "p"), "resource group"},
		{poolID("s", "g/providers", "l", "p"), "resource group"},
		{poolID("s", "g", "", "p"), "load balancer name"},
		{poolID("s", "g", "-l", "p"), "load balancer name"},
		{poolID("s", "g", "l", "p/../../x"), "pool name"},
		{poolID("s", "g", "l", "p%2f"), "pool name"},
		{poolID("s", "g", "l", "p\n"), "pool name"},
		{poolID("s", "g", "l", strings.Repeat("p", 81)), "pool name"},
	}
	for _, tt := range tests {
		err := tt.id.Validate()
		if (err == nil) != (tt.wantText == "") || err != nil && !strings.HasPrefix(err.Error(), tt.wantText) {
			t.Errorf("%q: %v, want %q", tt.id, err, tt.wantText)
		}
	}
}

func TestParseFrontendID(t *testing.T) {
	const id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/gw/frontendIPConfigurations/in"
	for text, valid := range map[string]bool{
		id: true, " " + strings.ToUpper(id) + "\n": true, id + "/": false, id + "/x": false, strings.TrimSuffix(id, "/in"): false, id[1:]: false, "": false,
		strings.Replace(id, "/in", "/..", 1): false, strings.Replace(id, "/gw/", "//", 1): false, strings.Replace(id, "frontendIPConfigurations", "probes", 1): false,
		strings.Replace(id, "loadBalancers", "applicationGateways", 1): false, strings.Replace(id, "/rg/", "/r%2fg/", 1): false,
	} {
		switch got, err := lb.ParseFrontendID(text); {
		case (err == nil) != valid:
			t.Errorf("%q: %v", text, err)
		case valid && !strings.EqualFold(got.String(), id):
			t.Errorf("%q: %s", text, got)
		}
	}
}

func FuzzParseFrontendID(f *testing.F) {
	f.Add("/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/gw/frontendIPConfigurations/in")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := lb.ParseFrontendID(text)
		if second, failed := lb.ParseFrontendID(id.String()); err == nil && (failed != nil || second != id || id.LoadBalancer.Validate() != nil) {
			t.Errorf("%q: %s, then %s, %v", text, id, second, failed)
		}
	})
}

func TestKeysIgnoreCase(t *testing.T) {
	a, b := poolID("S", "RG", "Kubernetes", "Web"), poolID("s", "rg", "kubernetes", "web")
	if a.Key() != b.Key() || a.LoadBalancer.Key() != b.LoadBalancer.Key() {
		t.Error("Azure takes them for the same pool, the keys do not")
	}
	if a.Key() == poolID("s", "rg", "kubernetes", "web2").Key() {
		t.Error("two pools, one key")
	}
}

func TestFamilies(t *testing.T) {
	for ip, want := range map[string]lb.Family{"10.0.0.1": lb.IPv4, "fd00::1": lb.IPv6, "::ffff:10.0.0.1": ""} {
		addr := netip.MustParseAddr(ip)
		for _, family := range []lb.Family{lb.IPv4, lb.IPv6, ""} {
			if got := family.Contains(addr); got != (family == want && want != "") {
				t.Errorf("%q.Of(%s) = %v", family, ip, got)
			}
		}
	}
}

// A valid ID has one path segment per part and needs no escaping.
func FuzzValidate(f *testing.F) {
	f.Add("s", "g", "l", "p")
	f.Add("a-b", "(x).y", "l.1", "p/x")
	f.Fuzz(func(t *testing.T, subscription, group, balancer, pool string) {
		id := poolID(subscription, group, balancer, pool)
		if id.Validate() != nil {
			return
		}
		if n := strings.Count(id.String(), "/"); n != 10 {
			t.Errorf("%q has %d slashes", id, n)
		}
		u, err := url.Parse("https://host" + id.String())
		if err != nil || u.Path != id.String() || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%q is not what a URL makes of it: %v %+v", id, err, u)
		}
	})
}
