// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

// Existing names do not change; others become valid.
func TestObjectNames(t *testing.T) {
	for name, want := range map[string]string{
		"kubernetes": "kubernetes", "Kubernetes": "kubernetes", "prod.eu": "prod.eu", "lb-2": "lb-2",
		"prod_": "prod-a3e766b1", "prod_eu": "prod-eu-d392496b", "prod..eu": "prod.eu-e743c8be",
		"prod_.eu": "prod.eu-9d09e3f7", "prod.-eu": "prod.eu-1954bb73", "prod...eu": "prod.eu-716562b8", "a._._b": "a.b-d06eb596",
	} {
		if got := ObjectName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// azureNames generates load balancer names valid in Azure, most of them short and unusual.
func azureNames() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		name := rapid.StringMatching(`[a-bA-B0]`).Draw(t, "first")
		if limit := rapid.SampledFrom([]int{3, 10, 78}).Draw(t, "most"); rapid.Bool().Draw(t, "longer") {
			name += rapid.StringOfN(rapid.SampledFrom([]rune("abB0_.-")), 0, limit, -1).Draw(t, "middle")
			name += rapid.StringMatching(`[a-bA-B0_]`).Draw(t, "last")
		}
		return name
	})
}

// For any Azure load balancer name, the BackendPool names and the node label are valid, stable and unique.
func TestEveryNameOfAzureFitsKubernetes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		web := strings.Repeat("w", rapid.SampledFrom([]int{1, 63}).Draw(t, "length of the Service's name"))
		seen := map[string]string{}
		for _, name := range []string{azureNames().Draw(t, "one"), azureNames().Draw(t, "other")} {
			on := lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: name}
			if err := on.Validate(); err != nil {
				t.Fatal(err)
			}
			if wrong := validation.IsValidLabelValue(PlaceValue(name)); len(wrong) > 0 || PlaceValue(name) == "" {
				t.Fatalf("label of %s: %s: %v", name, PlaceValue(name), wrong)
			}
			made := []string{"label " + PlaceValue(name)}
			for _, of := range []string{"nodes", web} {
				pool := PoolObjectName(of, on.Name, lb.IPv6)
				if wrong := validation.IsDNS1123Subdomain(pool); len(wrong) > 0 {
					t.Fatalf("BackendPool of %s: %s: %v", name, pool, wrong)
				}
				made = append(made, pool)
			}
			for _, m := range made {
				if of, ok := seen[m]; ok && of != strings.ToLower(name) {
					t.Fatalf("%s and %s are both %s", of, name, m)
				}
				seen[m] = strings.ToLower(name)
			}
		}
	})
}
