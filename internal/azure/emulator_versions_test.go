// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
)

// storedResource returns a resource as stored by the emulator.
func storedResource(t *testing.T, emu *armemu.Emulator, id string) string {
	t.Helper()
	text, ok := emu.Get(id)
	if !ok {
		t.Fatalf("there is no %s", id)
	}
	return string(text)
}

// Another tool sets a property with a newer api-version, then Weir changes another one. Depending
// on the emulator's option, Weir's write is rejected and repeated with the newer api-version, keeps
// the property, or resets it, which a client with the older one cannot detect.
func TestALoadBalancerWithANewerProperty(t *testing.T) {
	for option, keeps := range map[armemu.OlderVersionPolicy]bool{armemu.RejectOlderVersion: true, armemu.KeepNewProperties: true, armemu.ResetNewProperties: false} {
		t.Run(string(option), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				emu, client, _ := newEmulator(t, armemu.Options{Seed: 1, LatencyScale: 1, OlderVersion: option})
				withSubnet(t, emu)
				if _, err := client.PutLoadBalancer(t.Context(), newInternalLoadBalancer()); err != nil {
					t.Fatal(err)
				}
				text := storedResource(t, emu, private.String())
				text = strings.Replace(text, `"privateIPAllocationMethod"`, `"enableConnectionTracking":true,"privateIPAllocationMethod"`, 1)
				if err := emu.Put(private.String(), []byte(text)); err != nil {
					t.Fatal(err)
				}
				emu.ClearCalls()
				for n := range int32(2) {
					b, err := client.GetLoadBalancer(t.Context(), private)
					if err != nil {
						t.Fatal(err)
					}
					b.Rules[0].IdleMinutes = 20 + n
					if _, err := client.PutLoadBalancer(t.Context(), b); err != nil {
						t.Fatal(err)
					}
				}
				text = storedResource(t, emu, private.String())
				if strings.Contains(text, `"enableConnectionTracking":true`) != keeps || !strings.Contains(text, `"idleTimeoutInMinutes":21`) {
					t.Errorf("Azure has %s", text)
				}
				rejected := 0
				for _, call := range emu.Calls() {
					if call.Status == http.StatusBadRequest {
						rejected++
					}
				}
				if want := map[bool]int{true: 1}[option == armemu.RejectOlderVersion]; rejected != want {
					t.Errorf("%d requests are rejected, want %d", rejected, want)
				}
			})
		})
	}
}

// The model of a scale set retains properties that a PATCH lacks or the write does not send.
func TestAModelWithPublicIPConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu, client, pool := newEmulator(t, armemu.Options{Seed: 1})
		withSubnet(t, emu)
		id := lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeScaleSet, Name: "blue"}
		const public = `{"name":"ip","sku":{"name":"Standard","tier":"Regional"},"properties":{"publicIPAddressVersion":"IPv4","ipTags":[{"ipTagType":"RoutingPreference","tag":"Internet"}]}}`
		body := fmt.Sprintf(`{"location":"eastus","sku":{"name":"Standard_D2s_v5","capacity":2},"tags":{"a":"b"},"properties":{"orchestrationMode":"Uniform","upgradePolicy":{"mode":"Manual"},"virtualMachineProfile":{
			"priority":"Spot","networkProfile":{"networkApiVersion":"2020-11-01","networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,"ipConfigurations":[
			{"name":"ip","properties":{"primary":true,"subnet":{"id":"%s/subnets/nodes"},"publicIPAddressConfiguration":%s}}]}}]}}}}`, vnetID, public)
		if err := emu.Put(id.String(), []byte(body)); err != nil {
			t.Fatal(err)
		}
		sets := azure.NewMachineClient(client)
		s, err := sets.GetScaleSet(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		s.Interfaces[0].IPConfigurations[0].Pools = []string{pool.String()}
		if _, err := sets.PatchModel(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		text := storedResource(t, emu, id.String())
		for _, want := range []string{
			`"sku":{"name":"Standard","tier":"Regional"}`, `"publicIPAddressVersion":"IPv4"`, `"ipTagType":"RoutingPreference"`, `"capacity":2`, `"priority":"Spot"`,
			`"networkApiVersion":"2020-11-01"`, `"mode":"Manual"`, `"a":"b"`, `"loadBalancerBackendAddressPools":[{"id":"` + pool.String() + `"}]`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in %s", want, text)
			}
		}
	})
}
