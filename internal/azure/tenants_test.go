// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// tenantTokens issues a token per tenant, as a multi-tenant application gets them.
type tenantTokens struct{}

func (tenantTokens) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "of-" + o.TenantID, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// tokenLog records which tokens the requests to each subscription carry.
type tokenLog struct {
	azure.Transport
	mu     sync.Mutex
	counts map[string]map[string]int // by subscription, then "method primary, auxiliary"
}

func (l *tokenLog) Do(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	subscription, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/subscriptions/"), "/")
	if l.counts[subscription] == nil {
		l.counts[subscription] = map[string]int{}
	}
	l.counts[subscription][r.Header.Get("Authorization")+", auxiliary "+r.Header.Get("x-ms-authorization-auxiliary")]++
	return l.Transport.Do(r)
}

// A network in another tenant: each request carries the token of the tenant that has its subscription, and that of the
// other one as an auxiliary token. Polls and reads after a write do, too.
func TestTokensOfTwoTenants(t *testing.T) {
	emu := patient.Watch(t, armemu.New(armemu.Options{Seed: 1}))
	networkVNet := strings.Replace(vnetID, "/s1/", "/network/", 1)
	balancer := lb.LoadBalancerID{SubscriptionID: "Network", ResourceGroup: "rg", Name: "kubernetes"}
	nic := lb.ResourceID{SubscriptionID: "cluster", ResourceGroup: "rg", Type: lb.TypeNetworkInterface, Name: "nic"}
	for resource, body := range map[string]string{
		networkVNet:       `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`,
		balancer.String(): `{"location":"eastus","sku":{"name":"Standard"},"properties":{"backendAddressPools":[{"name":"web"}]}}`,
	} {
		if err := emu.Put(resource, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name             string
		tenant           azure.NetworkTenant
		network, cluster string
	}{
		{"one tenant", azure.NetworkTenant{}, "Bearer of-, auxiliary ", "Bearer of-, auxiliary "},
		{"two tenants", azure.NetworkTenant{SubscriptionID: "network", TenantID: "t2", OwnTenantID: "t1"}, "Bearer of-t2, auxiliary Bearer of-t1", "Bearer of-t1, auxiliary Bearer of-t2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			endpoint, _, err := azure.LocalEndpoint("http://127.0.0.1:8080")
			if err != nil {
				t.Fatal(err)
			}
			wire := &tokenLog{Transport: emu.Transport(), counts: map[string]map[string]int{}}
			client, err := azure.New(azure.Options{
				Endpoint: endpoint, Credential: tenantTokens{}, NetworkTenant: tt.tenant, Transport: wire, VirtualNetworkID: networkVNet,
			})
			if err != nil {
				t.Fatal(err)
			}
			pool, err := client.GetPool(t.Context(), lb.PoolID{LoadBalancer: balancer, Name: "web"})
			if err != nil {
				t.Fatal(err)
			}
			pool.Addresses = []lb.Address{{Name: "n", IP: netip.MustParseAddr("10.0.0.4")}}
			if _, err := client.PutPool(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			if _, err := client.ListPublicIPs(t.Context(), balancer.SubscriptionID, "rg"); err != nil {
				t.Fatal(err)
			}
			_, _ = azure.NewMachineClient(client).ListInterfaces(t.Context(), nic.SubscriptionID, nic.ResourceGroup) // a resource group that may be missing
			for subscription, want := range map[string]string{"network": tt.network, "cluster": tt.cluster} {
				seen := 0
				for of, by := range wire.counts {
					if !strings.EqualFold(of, subscription) {
						continue
					}
					for tokens, n := range by {
						if seen += n; tokens != want {
							t.Errorf("%d requests to subscription %s carry %s, want %s", n, subscription, tokens, want)
						}
					}
				}
				if seen == 0 {
					t.Errorf("no request to subscription %s", subscription)
				}
			}
		})
	}
}

func TestIncompleteNetworkTenant(t *testing.T) {
	endpoint, credential, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []azure.NetworkTenant{{TenantID: "t2", OwnTenantID: "t1"}, {TenantID: "t2", SubscriptionID: "s"}} {
		if _, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, NetworkTenant: tenant}); err == nil {
			t.Errorf("%+v is accepted", tenant)
		}
	}
}
