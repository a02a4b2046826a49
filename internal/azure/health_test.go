// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/lab/armemu"
)

const healthRole = "../../config/azure-role-health.json"

// The role for health is what reading the health of a rule needs, and without it the error names the action.
func TestReadHealth(t *testing.T) {
	raw, err := os.ReadFile(healthRole)
	if err != nil {
		t.Fatal(err)
	}
	role, err := armemu.ParseRole(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range append([]string{""}, role.Actions...) {
		t.Run(missing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				have := *role
				have.Actions = slices.DeleteFunc(slices.Clone(role.Actions), func(a string) bool { return a == missing })
				emu, client, pool := newEmulator(t, armemu.Options{Seed: 1, LatencyScale: 1, Role: &have})
				id := pool.LoadBalancer
				own := fmt.Sprintf(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"fe"}],
					"probes":[{"name":"p","properties":{"protocol":"Http","port":31000,"requestPath":"/healthz"}}],
					"backendAddressPools":[{"name":"web","properties":{"loadBalancerBackendAddresses":[
						{"name":"a","properties":{"ipAddress":"10.0.0.1","virtualNetwork":{"id":%q}}},{"name":"b","properties":{"ipAddress":"10.0.0.2","virtualNetwork":{"id":%[1]q}}}]}}],
					"loadBalancingRules":[{"name":"r","properties":{"protocol":"Tcp","frontendPort":80,"backendPort":80,
						"frontendIPConfiguration":{"id":%[2]q},"probe":{"id":%[3]q},"backendAddressPool":{"id":%[4]q}}}]}}`,
					vnetID, id.String()+"/frontendIPConfigurations/fe", id.String()+"/probes/p", id.String()+"/backendAddressPools/web")
				if err := emu.Put(id.String(), []byte(own)); err != nil {
					t.Fatal(err)
				}
				if err := emu.SetHealth(netip.MustParseAddr("10.0.0.2"), 31000, "Down_Probe_HttpStatusCodeError"); err != nil {
					t.Fatal(err)
				}
				emu.ClearCalls()
				members, err := client.ReadHealth(t.Context(), id, "r")
				if missing != "" {
					if f := armerror.FromError(err); f == nil || !strings.Contains(err.Error(), missing) {
						t.Errorf("%v", err)
					}
					return
				}
				if got, want := fmt.Sprint(members), "[{10.0.0.1 true Up_Probe_Success} {10.0.0.2 false Down_Probe_HttpStatusCodeError}]"; err != nil || got != want {
					t.Errorf("%s, %v; want %s", got, err, want)
				}
				requested := map[string]bool{}
				for _, call := range emu.Calls() {
					for _, action := range call.Actions {
						requested[action] = true
					}
				}
				if got, want := slices.Sorted(maps.Keys(requested)), slices.Sorted(slices.Values(role.Actions)); !slices.Equal(got, want) {
					t.Errorf("asked for %v, the role has %v", got, want)
				}
			})
		})
	}
}
