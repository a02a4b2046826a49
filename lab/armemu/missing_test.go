// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/lab/armemu"
)

// The messages are recorded ones.
func TestMissingPropertyMessages(t *testing.T) {
	emu := newCloud(t, armemu.Options{Throttle: armemu.AzureLimits()})
	putResource(t, emu, strings.Replace(group, "Network", "Compute", 1)+"/virtualMachineScaleSets/set", `{"location":"eastus"}`)
	const reads = "x-ms-ratelimit-remaining-subscription-reads"
	noRoot := `{"error":{"code":"ResourceNotFound","message":"The Resource 'Microsoft.Network/loadBalancers/none' under resource group 'rg' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix"}}`
	for _, c := range []struct {
		name, id, want string
		gateway        bool
	}{
		{"a root", group + "/loadBalancers/none", noRoot, true},
		{"a parent", group + "/loadBalancers/none/backendAddressPools/p", noRoot, true},
		{"a child", lbID + "/backendAddressPools/none", `{"error":{"code":"NotFound","details":[],"message":"Resource ` + lbID + `/backendAddressPools/none not found."}}`, false},
	} {
		a := sendRequest(t, emu, http.MethodGet, c.id, "")
		if a.status != 404 || a.raw != c.want {
			t.Errorf("%s: %d %s\nwant %s", c.name, a.status, a.raw, c.want)
		}
		if got := a.header.Get("x-ms-failure-cause") == "gateway"; got != c.gateway {
			t.Errorf("%s: the gateway answers: %v", c.name, got)
		}
		if got := a.header.Get(reads) == ""; got != c.gateway {
			t.Errorf("%s: throttle headers %v", c.name, a.header)
		}
	}
	emulatorScenario{t, emu}.expectAnswer(400, "InvalidParameter", http.MethodGet, strings.Replace(group, "Network", "Compute", 1)+"/virtualMachineScaleSets/set/virtualMachines/first?api-version=2024-07-01", "")
}

func TestStatusesOfDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := emulatorScenario{t, armemu.New(armemu.Options{LatencyScale: 1})}
		putResource(t, s.emu, nics+"nic", `{"location":"eastus","properties":{"ipConfigurations":[]}}`)
		putResource(t, s.emu, pips+"ip", lb("Standard", static))
		for id, status := range map[string]int{nics + "nic": 200, pips + "ip": 202} {
			gone := s.expectAnswer(status, "", http.MethodDelete, id, "")
			result, async := gone.header.Get("Location"), gone.header.Get("Azure-AsyncOperation")
			if gone.raw != "" || !strings.Contains(result, "/operationResults/") || !strings.Contains(async, "/operations/") {
				t.Errorf("%s: %v %s", id, gone.header, gone.raw)
			}
			s.expectAnswer(202, "", http.MethodGet, result, "")
			s.waitForOperations()
			if a := s.expectAnswer(204, "", http.MethodGet, result, ""); a.raw != "" {
				t.Errorf("%s: the result is %s", id, a.raw)
			}
			s.expectAnswer(204, "", http.MethodDelete, id, "")
		}
	})
}

// DELETE returns 200.
func TestSDKWaitsForADeletedInterface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := armemu.New(armemu.Options{LatencyScale: 1})
		putResource(t, emu, nics+"nic", `{"location":"eastus","properties":{"ipConfigurations":[]}}`)
		clients := newClients(t, emu.Transport(), "http://emulator.test")
		gone, err := clients.NewInterfacesClient().BeginDelete(t.Context(), "rg", "nic", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = gone.PollUntilDone(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, left := emu.Get(nics + "nic"); left {
			t.Error("the interface is still there")
		}
	})
}
