// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestUsages(t *testing.T) {
	for _, tt := range []struct {
		role     *Role
		status   int
		wantText string
	}{
		{nil, http.StatusOK, `"currentValue":1,"id":"/subscriptions/s/providers/Microsoft.Network/locations/eastus/usages/IPv4StandardSkuPublicIpAddresses","limit":2,`},
		{nil, http.StatusOK, `"currentValue":2,"id":"/subscriptions/s/providers/Microsoft.Network/locations/eastus/usages/PublicIPAddresses","limit":1000,`},
		{nil, http.StatusOK, `"currentValue":1,"id":"/subscriptions/s/providers/Microsoft.Network/locations/eastus/usages/LoadBalancers","limit":1000,`},
		{nil, http.StatusOK, `"currentValue":0,"id":"/subscriptions/s/providers/Microsoft.Network/locations/eastus/usages/StandardSkuLoadBalancers","limit":1000,`},
		{&Role{Actions: []string{"Microsoft.Network/locations/usages/read"}}, http.StatusOK, "value"},
		{&Role{Actions: []string{"Microsoft.Network/publicIPAddresses/read"}}, http.StatusForbidden, "AuthorizationFailed"},
	} {
		e := New(Options{Role: tt.role, MaxStandardIPs: 2})
		for id, body := range map[string]string{
			"publicIPAddresses/a":    `{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`,
			"publicIPAddresses/b":    `{"location":"eastus"}`,
			"publicIPAddresses/away": `{"location":"westus"}`,
			"loadBalancers/a":        `{"location":"eastus","sku":{"name":"Basic"}}`,
		} {
			if err := e.Put("/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/"+id, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://management.azure.com/subscriptions/s/providers/Microsoft.Network/locations/eastus/usages?api-version=2025-05-01", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer x")
		resp, err := e.Transport().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); err != nil || resp.StatusCode != tt.status || !strings.Contains(string(text), tt.wantText) {
			t.Errorf("%+v: %d, %v: %s", tt, resp.StatusCode, err, text)
		}
	}
}
