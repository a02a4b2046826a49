// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

func TestDesired(t *testing.T) {
	t.Parallel()
	set := settings()
	set.Tags = map[string]string{"team": "net", "K8S-AZURE-OWNER-SERVICE": "somebody"}
	got := buildDesired(*asks("shop/web", 1, fixed("10.0.0.9", "10.0.0.7"), count(3)).Link, "shop/web", frontend(), set)
	want := lb.PrivateLinkService{
		ID:       lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePrivateLinkService, Name: "pls-aaaa"},
		Location: "eastus", Frontends: []string{frontendA},
		NAT: []lb.NATAddress{
			{Name: "static-10.0.0.9", Subnet: network + "/subnets/nodes", Address: addr("10.0.0.9"), Static: true, Primary: true},
			{Name: "static-10.0.0.7", Subnet: network + "/subnets/nodes", Address: addr("10.0.0.7"), Static: true},
			{Name: "dynamic-2", Subnet: network + "/subnets/nodes"},
		},
		Tags: map[string]string{"team": "net", service.TagLinkOwner: "shop/web", service.TagCluster: "k8s"},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(sameAddr)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	elsewhere := *asks("shop/web", 1, called("mine")).Link
	elsewhere.ResourceGroup = "links"
	if id := buildDesired(elsewhere, "shop/web", frontend(), set).ID; id.Name != "mine" || id.ResourceGroup != "links" {
		t.Errorf("at %s", id)
	}
	long := frontend()
	long.Name = strings.Repeat("a", 73) + "--.a-b"
	if id := buildDesired(*asks("", 1).Link, "", long, set).ID; id.Validate() != nil || len(id.Name) > 80 {
		t.Errorf("called %q: %v", id.Name, id.Validate())
	}
}

// Requests that Azure would reject are rejected before a call, for every requesting Service.
func TestRefusedBeforeAnyCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		about  string
		change func(*Frontend, *Settings)
		want   string
	}{
		{"nothing", func(*Frontend, *Settings) {}, ""},
		{"pools of addresses", func(f *Frontend, _ *Settings) { f.LoadBalancer.HasAddressPools = true }, "loadBalancerBackendPoolConfigurationType: nodeIPConfiguration"},
		{"pools of addresses that are to change", func(f *Frontend, s *Settings) { f.LoadBalancer.HasAddressPools, s.InterfacePools = true, true }, "still has addresses"},
		{"pools that have changed", func(_ *Frontend, s *Settings) { s.InterfacePools = true }, ""},
		{"Basic", func(f *Frontend, _ *Settings) { f.LoadBalancer.SKU = lb.Basic }, "Standard"},
		{"a load balancer that says no SKU", func(f *Frontend, _ *Settings) { f.LoadBalancer.SKU = "" }, "Standard"},
		{"an IPv6 frontend", func(f *Frontend, _ *Settings) { f.Family = lb.IPv6 }, "IPv4 alone"},
		{"beside an IPv6 frontend", func(f *Frontend, _ *Settings) { f.LoadBalancer.IPv6 = true }, service.Configurations},
		{"the seventh more", func(f *Frontend, _ *Settings) { f.LoadBalancer.LinkCount = 7 }, ""},
		{"the eighth more", func(f *Frontend, _ *Settings) { f.LoadBalancer.LinkCount = 8 }, "fewer than 8"},
		{"more where Azure takes more", func(f *Frontend, s *Settings) { f.LoadBalancer.LinkCount, s.MaxPerLoadBalancer = 8, 16 }, ""},
	} {
		t.Run(tt.about, func(t *testing.T) {
			f, set := frontend(), settings()
			tt.change(&f, &set)
			v := ResolveOwner(f, set, []FrontendService{asks("n/a", 1), asks("n/b", 2), {Service: "n/c"}}, nil)
			step := NextStep(f, v, nil, nil, set)
			if tt.want == "" {
				if v.KeepCurrent || v.Desired == nil || step.Action != ActionCreate || len(v.Problems["n/a"])+len(v.Problems["n/b"]) > 0 {
					t.Errorf("%+v, %+v", v, step)
				}
				return
			}
			if step.Action != ActionKeep || len(v.Problems["n/c"]) > 0 {
				t.Errorf("%+v, %+v", v, step)
			}
			for _, name := range []string{"n/a", "n/b"} {
				if reported := v.Problems[name]; len(reported) != 1 || reported[0].Field != service.PLSCreate || !strings.Contains(reported[0].Expected, tt.want) {
					t.Errorf("%s hears %v", name, reported)
				}
			}
		})
	}
}

// The limit applies to new ones; an existing one stays and may change.
func TestOneThatIsThereIsNotOneTooMany(t *testing.T) {
	t.Parallel()
	f := frontend()
	f.LoadBalancer.LinkCount = 8
	if v := ResolveOwner(f, settings(), []FrontendService{asks("n/a", 1)}, []lb.PrivateLinkService{made("n/a")}); v.KeepCurrent {
		t.Errorf("%+v", v)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	set := settings()
	set.PodSubnets = []string{"Nodes"}
	for _, tt := range []struct {
		about  string
		public bool
		change func(*FrontendService)
		want   []string
	}{
		{"nothing", true, func(*FrontendService) {}, nil},
		{"floating IP of a private frontend", false, func(s *FrontendService) { s.FloatingIP = true }, nil},
		{"floating IP of a public frontend", true, func(s *FrontendService) { s.FloatingIP = true }, []string{service.DisableFloatingIP}},
		{"Local, in the pods' subnet", false, func(s *FrontendService) { s.Local = true }, []string{service.PLSSubnet}},
		{"Local, in another", false, func(s *FrontendService) { s.Local, s.Link.Subnet = true, "nat" }, nil},
		{"PROXY protocol", false, func(s *FrontendService) { s.Link.ProxyProtocol = true }, nil},
		{"an HTTP probe", false, func(s *FrontendService) { s.HTTPProbe = true }, nil},
		{"both", false, func(s *FrontendService) { s.HTTPProbe, s.Link.ProxyProtocol = true, true }, []string{service.PLSProxyProtocol}},
	} {
		t.Run(tt.about, func(t *testing.T) {
			s, f := asks("n/a", 1), frontend()
			f.Public = tt.public
			tt.change(&s)
			v := ResolveOwner(f, set, []FrontendService{s}, nil)
			if len(v.Warnings["n/a"]) != len(tt.want) || v.Desired == nil {
				t.Fatalf("%+v", v)
			}
			for i, want := range tt.want {
				if !strings.Contains(v.Warnings["n/a"][i], want) {
					t.Errorf("%q does not name %s", v.Warnings["n/a"][i], want)
				}
			}
		})
	}
}
