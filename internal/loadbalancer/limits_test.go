// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/service"
)

// addressed is a Cluster with BackendPools of addresses.
type addressed struct{ reaching }

func (addressed) MemberKind(lb.PoolID) service.MemberKind { return service.AddressMembers }

type listedLinks struct {
	privatelink.Azure
	all []lb.PrivateLinkService
}

func (l listedLinks) List(context.Context, string, string) ([]lb.PrivateLinkService, error) {
	return l.all, nil
}

// The usage is that of the last observed state, members included, although the cache drops them.
func TestListUsages(t *testing.T) {
	b := listed(&lists{})
	b.cfg.Cluster, b.cfg.MaxRules, b.cfg.MaxPrivateLinks = addressed{}, 250, 4
	id := lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "Kubernetes"}
	link := lb.PrivateLinkService{ID: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Name: "pls"}, Frontends: []string{id.String() + "/frontendIPConfigurations/f"}}
	b.links = privatelink.New(privatelink.Config{Azure: listedLinks{all: []lb.PrivateLinkService{link}}})
	if err := b.links.CheckReadable(t.Context(), "rg"); err != nil {
		t.Fatal(err)
	}
	pool := lb.Pool{ID: lb.PoolID{LoadBalancer: id, Name: "kubernetes"}, Addresses: make([]lb.Address, 4100)}
	b.cache.recordState(lb.LoadBalancer{ID: id, Etag: "1", Pools: []lb.Pool{pool}, Rules: []lb.Rule{{Pool: "kubernetes", Frontend: "f"}, {Pool: "kubernetes", Frontend: "f"}}})
	got := b.ListUsages()
	for name, want := range map[string][2]int{
		plan.LimitRules: {2, 250}, plan.LimitPoolMembers: {4100, 5000}, plan.LimitFrontendMembers: {8200, 10_000}, plan.LimitPrivateLinkServices: {1, 4},
		plan.LimitMachineRules: {0, 299}, // of addresses
	} {
		if u := (plan.LimitUsage{Resource: "Kubernetes", Name: name, Was: want[0], Used: want[0], Max: want[1]}); !slices.Contains(got, u) {
			t.Errorf("no %+v in %+v", u, got)
		}
	}
}

// Each region of the load balancers, and that of new ones, is listed once.
func TestListRegions(t *testing.T) {
	b := listed(&lists{})
	if b.cfg.Location = ""; len(b.ListRegions()) > 0 {
		t.Errorf("without a load balancer: %q", b.ListRegions())
	}
	for name, location := range map[string]string{"a": "East US", "b": "westus", "c": ""} {
		b.cache.recordState(lb.LoadBalancer{ID: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: name}, Etag: "1", Location: location})
	}
	b.cfg.Location = "EastUS"
	if got := b.ListRegions(); !slices.Equal(got, []string{"eastus", "westus"}) {
		t.Errorf("got %q", got)
	}
}
