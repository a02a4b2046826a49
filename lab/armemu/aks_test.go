// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// The seed of the guide for AKS is a state that Azure accepts: each resource can be written as it is read. Both
// pools of the load balancer hold all instances.
func TestTheAKSSeedIsValid(t *testing.T) {
	seed, err := os.ReadFile("../../docs/guide/aks/seed.json")
	if err != nil {
		t.Fatal(err)
	}
	emu := armemu.New(armemu.Options{})
	if err := emu.Restore(seed); err != nil {
		t.Fatal(err)
	}
	var resources []struct{ ID string }
	if err := json.Unmarshal(seed, &resources); err != nil {
		t.Fatal(err)
	}
	written, instances := 0, 0
	for _, r := range resources {
		switch {
		case strings.Contains(r.ID, "/virtualMachines/"):
			instances++
		case !strings.Contains(r.ID, "/providers/"):
			continue
		}
		target := r.ID
		if strings.Contains(r.ID, "/Microsoft.Compute/") {
			target += "?api-version=2024-07-01"
		}
		shown := sendRequest(t, emu, http.MethodGet, target, "")
		if a := sendRequest(t, emu, http.MethodPut, target, shown.raw); shown.status != http.StatusOK || a.status != http.StatusOK {
			t.Errorf("%s: %d, %d %s", r.ID, shown.status, a.status, a.raw)
		}
		written++
	}
	if written < 8 {
		t.Errorf("%d resources", written)
	}
	for _, pool := range []string{"aksOutboundBackendPool", "kubernetes"} {
		body, _ := emu.Get("/subscriptions/5c0ffee0-0000-4000-8000-000000000001/resourceGroups/MC_shop-rg_shop_eastus/providers/Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/" + pool)
		var shown struct {
			Properties struct{ BackendIPConfigurations []struct{} }
		}
		if err := json.Unmarshal(body, &shown); err != nil || len(shown.Properties.BackendIPConfigurations) != instances {
			t.Errorf("pool %s has %d of %d instances: %v", pool, len(shown.Properties.BackendIPConfigurations), instances, err)
		}
	}
}
