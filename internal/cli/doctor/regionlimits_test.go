// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// Quotas of the region that Azure reports as near are a warning. Without the permission they are unknown.
func TestRegionLimits(t *testing.T) {
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/locations/eastus/usages") {
			t.Errorf("%s is read", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	a := azureAt(t, server, "")
	if got := a.checkRegionLimits(t.Context()); got[0].Result != OK || !strings.Contains(got[0].Why, "not read") {
		t.Errorf("without a location: %+v", got)
	}
	a.loadBalancers = []lb.LoadBalancer{{Location: "eastus"}}
	usage := func(name, used string) string {
		return `{"value":[{"unit":"Count","currentValue":` + used + `,"limit":1000,"name":{"value":"` + name + `","localizedValue":"x"}}]}`
	}
	for _, tt := range []struct {
		status int
		body   string
		want   Result
		reason string
	}{
		{200, usage("IPv4StandardSkuPublicIpAddresses", "799"), OK, "1 limit, of which less than 80 % is used"},
		{200, usage("IPv4StandardSkuPublicIpAddresses", "800"), Warn, "region eastus has 800 of 1000 Standard public IPv4 addresses"},
		{200, usage("LoadBalancers", "1000"), Fail, "region eastus has 1000 of 1000 load balancers"},
		{200, usage("RouteTables", "1000"), OK, "0 limits"},
		{403, `{"error":{"code":"AuthorizationFailed","message":"no"}}`, Unknown, "403 AuthorizationFailed"},
	} {
		status, body = tt.status, tt.body
		got := a.checkRegionLimits(t.Context())
		if len(got) != 1 || got[0].Result != tt.want || !strings.Contains(got[0].Why, tt.reason) || tt.want == Unknown && !strings.Contains(got[0].Fix, usagesAction) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}
