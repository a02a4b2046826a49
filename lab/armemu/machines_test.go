// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

const vmID = computeGroup + "/virtualMachines/vm"

func TestMachinesHoldUpTheirInterfaces(t *testing.T) {
	inPool, vm := nic(userPool("p")), `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nics+`nic"}]}}}`
	for _, tt := range []struct {
		about, method, path, body string
		settled                   bool // the machine's own operation has ended
		status                    int
		code, state, ends         string
	}{
		{about: "nothing", status: 200, state: "Updating", ends: "Succeeded"},
		{about: "it is being changed", method: http.MethodPut, body: vm, status: 429, code: "RetryableError"},
		{about: "it is being started", method: http.MethodPost, path: "/start", status: 429, code: "RetryableError"},
		{about: "it is being deleted", method: http.MethodDelete, status: 200, state: "Updating", ends: "Failed"},
		{about: "it is deallocated", method: http.MethodPost, path: "/deallocate", settled: true, status: 200, state: "Succeeded"},
		{about: "it is started", method: http.MethodPost, path: "/start", settled: true, status: 200, state: "Updating", ends: "Succeeded"},
	} {
		synctest.Test(t, func(t *testing.T) {
			emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true})
			withInterface(t, emu)
			putResource(t, emu, vmID, vm)
			if tt.method != "" {
				expectAccepted(t, sendRequest(t, emu, tt.method, vmID+tt.path+computeAPI, tt.body))
			}
			if tt.settled {
				time.Sleep(time.Hour)
			}
			a := sendRequest(t, emu, http.MethodPut, nics+"nic", strings.Replace(inPool, `"location"`, `"tags":{"a":"b"},"location"`, 1))
			if a.status != tt.status || a.errorCode() != tt.code || a.provisioningState() != tt.state {
				t.Fatalf("%s: %d %s", tt.about, a.status, a.raw)
			}
			if tt.code != "" && !strings.Contains(a.raw, vmID+" used by resource "+nics+"nic is not in Succeeded state") {
				t.Errorf("%s: %s", tt.about, a.raw)
			}
			time.Sleep(time.Hour)
			if tt.ends == "" {
				return
			}
			poll := sendRequest(t, emu, http.MethodGet, a.header.Get("Azure-AsyncOperation"), "")
			if poll.stringField("status") != tt.ends || tt.ends == "Failed" && !strings.Contains(poll.raw, "marked for deletion") {
				t.Errorf("%s: %s", tt.about, poll.raw)
			}
		})
	}
}

// The instance view needs $expand. A seed may contain one, a write may not.
func TestInstanceView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true})
		putResource(t, emu, vmID, `{"location":"eastus","properties":{"instanceView":{"statuses":[{"code":"ProvisioningState/succeeded"},{"code":"PowerState/deallocated"}]}}}`)
		putResource(t, emu, setID, `{"location":"eastus"}`)
		putResource(t, emu, instanceID("0"), `{"location":"eastus"}`)
		sees := func(id, state string) {
			t.Helper()
			if a := sendRequest(t, emu, http.MethodGet, id+computeAPI+"&$expand=instanceView", ""); strings.Count(a.raw, "PowerState/") != 1 || !strings.Contains(a.raw, "PowerState/"+state) {
				t.Errorf("want %s: %s", state, a.raw)
			}
			if a := sendRequest(t, emu, http.MethodGet, id+computeAPI, ""); strings.Contains(a.raw, "PowerState") {
				t.Errorf("nobody has asked: %s", a.raw)
			}
		}
		sees(vmID, "deallocated")
		sees(instanceID("0"), "running")
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, vmID+computeAPI, `{"location":"eastus","properties":{"instanceView":{}}}`))
		sees(vmID, "deallocated")
		time.Sleep(time.Hour)
		for _, id := range []string{vmID, instanceID("0")} {
			for action, state := range map[string]string{"start": "running", "deallocate": "deallocated"} {
				a := sendRequest(t, emu, http.MethodPost, id+"/"+action+computeAPI, "")
				if a.status != 202 || a.header.Get("Location") == "" {
					t.Errorf("%s: %d %s", action, a.status, a.raw)
				}
				time.Sleep(time.Hour)
				sees(id, state)
			}
		}
		if err := emu.Restore(emu.Snapshot()); err != nil {
			t.Fatal(err)
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPost, vmID+"/deallocate"+computeAPI, ""))
		expectRejected(t, sendRequest(t, emu, http.MethodPost, vmID+"/explode"+computeAPI, ""), 404, "InvalidResourceType")
		expectRejected(t, sendRequest(t, emu, http.MethodPost, instanceID("7")+"/start"+computeAPI, ""), 404, "NotFound")
		expectRejected(t, sendRequest(t, emu, http.MethodPost, instanceID("0")+"/explode"+computeAPI, ""), 404, "InvalidResourceType")
	})
}
