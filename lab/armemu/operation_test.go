// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/worlds"
)

func TestDoneAtOnce(t *testing.T) {
	pool := strings.Replace(poolBody("10.0.0.1"), "{", `{"name":"web",`, 1)
	withVM := func(t *testing.T, emu *armemu.Emulator) {
		putResource(t, emu, nics+"nic", nic(poolID))
		putResource(t, emu, computeGroup+"/virtualMachines/vm", `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nics+`nic"}]}}}`)
	}
	full := func(t *testing.T, emu *armemu.Emulator) { putResource(t, emu, poolID, poolBody("10.0.0.1")) }
	failed := func(t *testing.T, emu *armemu.Emulator) {
		setFaults(t, emu, `rules: [{match: {method: PUT, nth: 1}, action: {operation: {fail: {code: InternalServerError}}}}]`)
		sendRequest(t, emu, http.MethodPut, lbID, lbBody(`{"name":"web"}`))
		time.Sleep(time.Minute)
	}
	running := func(t *testing.T, emu *armemu.Emulator) {
		sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
	}
	for _, row := range []struct {
		about    string
		prepare  func(*testing.T, *armemu.Emulator)
		id, body string
		done     bool
		operates bool
	}{
		{"a new load balancer without members", nil, otherLB, lb("Standard", ""), true, true},
		{"a new load balancer with addresses", nil, otherLB, withMember(withFrontends(privateFrontend("in", nodesID, ""))), false, true},
		{"a load balancer without members", nil, lbID, lbBody(`{"name":"web"}`), true, true},
		{"a load balancer that loses its members", full, lbID, lbBody(`{"name":"web"}`), false, true},
		{"a load balancer that gets members", nil, lbID, lbBody(pool), false, true},
		{"a load balancer with interfaces", withVM, lbID, lbBody(`{"name":"web"}`), false, true},
		{"a load balancer that is being written", running, lbID, lbBody(`{"name":"web"},{"name":"spare"}`), false, true},
		{"a load balancer whose last write failed", failed, lbID, lbBody(`{"name":"web"},{"name":"spare"}`), false, true},
		{"a pool without addresses", nil, lbID + "/backendAddressPools/new", poolBody(), false, true},
		{"a new interface", nil, nics + "nic", nic(poolID), true, false},
		{"an interface without a machine", func(t *testing.T, emu *armemu.Emulator) { putResource(t, emu, nics+"nic", nic(poolID)) }, nics + "nic", nic(lbID + "/backendAddressPools/spare"), true, false},
		{"an interface of a machine", withVM, nics + "nic", nic(lbID + "/backendAddressPools/spare"), false, true},
		{"a public IP", nil, pips + "a", lb("Standard", static), false, true},
		{"a network", nil, vnetID + "2", `{"location":"eastus"}`, false, true},
	} {
		t.Run(row.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				emu := newCloud(t, armemu.Options{LatencyScale: 1, Behavior: worlds.BatchedWrites()})
				if row.prepare != nil {
					row.prepare(t, emu)
				}
				a := sendRequest(t, emu, http.MethodPut, row.id, row.body)
				state := map[bool]string{true: "Succeeded", false: "Updating"}[row.done]
				if a.status >= 300 || a.provisioningState() != state {
					t.Errorf("%d %s, want %s: %s", a.status, a.provisioningState(), state, a.raw)
				}
				if waits := a.header.Get("Retry-After") != ""; waits == row.done {
					t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
				}
				url, notifies := a.header.Get("Azure-AsyncOperation"), a.header.Get("Azure-AsyncNotification")
				if (url != "") != row.operates || (notifies == "Enabled") != row.operates {
					t.Errorf("Azure-AsyncOperation is %q, Azure-AsyncNotification %q", url, notifies)
				}
			})
		})
	}
}

func TestOperationURLIsOpaque(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	a := sendRequest(t, emu, http.MethodDelete, poolID+"2", "")
	if a.status != http.StatusNoContent {
		t.Fatal(a.raw)
	}
	a = sendRequest(t, emu, http.MethodDelete, lbID+"/backendAddressPools/spare", "")
	for _, header := range []string{"Azure-AsyncOperation", "Location"} {
		url := a.header.Get(header)
		if got := sendRequest(t, emu, http.MethodGet, url, ""); got.status >= 300 {
			t.Errorf("%s: %d %s", url, got.status, got.raw)
		}
		for _, key := range []string{"t", "c", "s", "h"} {
			before, after, found := strings.Cut(url, "&"+key+"=")
			if _, after, _ = strings.Cut(after, "&"); !found {
				t.Fatalf("%s has no %s", url, key)
			}
			if got := sendRequest(t, emu, http.MethodGet, before+"&"+after, ""); got.status != http.StatusNotFound {
				t.Errorf("without %s: %d", key, got.status)
			}
		}
	}
}
