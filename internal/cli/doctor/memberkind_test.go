// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
)

// The kind of members is the one that the controller uses: that of what exists in Azure and of its BackendPools, and only
// then the default of azure.json. The actions that Weir's identity needs follow from it.
func TestActionsFollowTheKindOfMembers(t *testing.T) {
	pool := func(name string, nic bool) map[string]any {
		member := map[string]any{"loadBalancerBackendAddresses": []any{map[string]any{"name": "n", "properties": map[string]any{"ipAddress": "10.0.9.1"}}}}
		if nic {
			member = map[string]any{"backendIPConfigurations": []any{map[string]any{"id": "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/networkInterfaces/n/ipConfigurations/c"}}}
		}
		return map[string]any{"name": name, "properties": member}
	}
	backendPool := func(namespace, membership, madeFor string) client.Object {
		p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}
		p.Spec.Nodes, p.Spec.Membership, p.Status.MadeFor = &v1alpha1.NodeMembers{}, membership, madeFor
		return p
	}
	const own = "weir-system"
	for about, tt := range map[string]struct {
		settings   string
		name       string // of the load balancer; empty for none
		pools      []any
		objects    []client.Object
		interfaces bool
	}{
		"nothing exists":                          {"", "", nil, nil, true},
		"nothing exists, and azure.json decides":  {`,"loadBalancerBackendPoolConfigurationType":"nodeIP"`, "", nil, nil, false},
		"BackendPools of addresses":               {"", "", nil, []client.Object{backendPool(own, v1alpha1.MembershipAddress, v1alpha1.MadeForNodes)}, false},
		"a BackendPool of somebody":               {"", "", nil, []client.Object{backendPool("shop", v1alpha1.MembershipAddress, v1alpha1.MadeForNodes)}, true},
		"a BackendPool that Weir did not make":    {"", "", nil, []client.Object{backendPool(own, v1alpha1.MembershipAddress, "")}, true},
		"a pool of addresses":                     {"", "kubernetes", []any{pool("kubernetes", false)}, nil, false},
		"beside one of interfaces of somebody":    {"", "kubernetes", []any{pool("aksOutboundBackendPool", true), pool("kubernetes", false)}, nil, false},
		"a pool of interfaces":                    {`,"localServicePools":"own"`, "kubernetes", []any{pool("kubernetes", true)}, nil, true},
		"a load balancer that is not the cluster": {"", "other", []any{pool("kubernetes", false)}, nil, true},
	} {
		t.Run(about, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				list := []any{}
				if strings.HasSuffix(strings.ToLower(req.URL.Path), "/loadbalancers") && tt.name != "" {
					list = append(list, map[string]any{
						"id": "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/" + tt.name, "name": tt.name, "etag": "1",
						"sku": map[string]any{"name": "Standard"}, "properties": map[string]any{"backendAddressPools": tt.pools},
					})
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"value": list})
			}))
			defer server.Close()
			api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(tt.objects...).Build()
			report := Doctor{API: api, Namespace: own, Azure: azureAt(t, server, tt.settings)}.checkAzure(t.Context())
			asks := false
			for _, c := range report {
				asks = asks || strings.Contains(c.Why, "Microsoft.Compute/virtualMachineScaleSets/write")
			}
			if asks != tt.interfaces {
				t.Errorf("the actions for interfaces are checked: %t\n%+v", asks, report)
			}
		})
	}
}
