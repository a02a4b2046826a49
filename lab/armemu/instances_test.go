// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

const (
	setID      = computeGroup + "/virtualMachineScaleSets/set"
	computeAPI = "?api-version=2024-07-01"
)

func instanceID(n string) string { return setID + "/virtualMachines/" + n }

// The last ID segments.
func listNames(t *testing.T, emu *armemu.Emulator, list string) string {
	t.Helper()
	var page struct {
		Value []struct {
			ID string `json:"id"`
		} `json:"value"`
	}
	a := sendRequest(t, emu, http.MethodGet, list, "")
	if err := json.Unmarshal([]byte(a.raw), &page); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range page.Value {
		names = append(names, v.ID[strings.LastIndex(v.ID, "/")+1:])
	}
	return strings.Join(names, " ")
}

func TestInstancesAreWrittenSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true})
		putResource(t, emu, setID, `{"location":"eastus"}`)
		for _, n := range []string{"10", "2", "0"} {
			putResource(t, emu, instanceID(n), `{"location":"eastus"}`)
		}
		if got := listNames(t, emu, setID+"/virtualMachines"+computeAPI); got != "0 2 10" {
			t.Errorf("listed as %s", got)
		}
		first := sendRequest(t, emu, http.MethodPut, instanceID("0")+computeAPI, `{"location":"eastus","tags":{"a":"b"}}`, "If-Match", `"1"`)
		second := sendRequest(t, emu, http.MethodPut, instanceID("2")+computeAPI, `{"location":"eastus","tags":{"a":"b"}}`, "If-Match", `"1"`)
		for _, a := range []rawResponse{first, second} {
			if a.status != 200 || a.provisioningState() != "Updating" {
				t.Errorf("%d %s", a.status, a.raw)
			}
		}
		if got := sendRequest(t, emu, http.MethodGet, setID+computeAPI, "").header.Get("Etag"); got != `"1"` {
			t.Errorf("the scale set's etag is %s", got)
		}
		time.Sleep(time.Minute)
		for _, a := range []rawResponse{first, second} {
			if poll := sendRequest(t, emu, http.MethodGet, a.header.Get("Azure-AsyncOperation"), ""); poll.stringField("status") != "Succeeded" {
				t.Errorf("ends as %s", poll.raw)
			}
		}
	})
}

func TestAScaleSetTakesItsMachinesAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true})
		setFaults(t, emu, `rules: [{match: {kind: put, path: "virtualMachines/0"}, action: {operation: {stuck: true}}}]`)
		putResource(t, emu, setID, `{"location":"eastus"}`)
		putResource(t, emu, instanceID("0"), `{"location":"eastus"}`)
		written := sendRequest(t, emu, http.MethodPut, instanceID("0")+computeAPI, `{"location":"eastus"}`)
		expectAccepted(t, sendRequest(t, emu, http.MethodDelete, setID+computeAPI, ""))
		time.Sleep(5 * time.Minute)
		expectRejected(t, sendRequest(t, emu, http.MethodGet, instanceID("0")+computeAPI, ""), 404, "ResourceNotFound")
		expectRejected(t, sendRequest(t, emu, http.MethodPut, instanceID("0")+computeAPI, `{}`), 404, "ParentResourceNotFound")
		if poll := sendRequest(t, emu, http.MethodGet, written.header.Get("Azure-AsyncOperation"), ""); poll.stringField("status") != "Canceled" {
			t.Errorf("ends as %s", poll.raw)
		}
	})
}

// The lowest free address; the instance's own write does not change it.
func TestAddressesOfInstances(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	putResource(t, emu, nics+"n", nicInPools(""))
	putResource(t, emu, setID, `{"location":"eastus"}`)
	putResource(t, emu, instanceID("0"), instanceInPools())
	putResource(t, emu, instanceID("1"), instanceInPools())
	sees := func(want string) {
		t.Helper()
		a := sendRequest(t, emu, http.MethodGet, setID+"/networkInterfaces"+version, "")
		for _, ip := range strings.Fields(want) {
			if strings.Count(a.raw, `"privateIPAddress":"`+ip+`"`) != 1 {
				t.Errorf("no %s: %s", ip, a.raw)
			}
		}
	}
	sees("10.0.0.5 10.0.0.6")
	body := strings.Replace(instanceInPools(poolID), `"subnet"`, `"privateIPAddress":"10.0.0.200","subnet"`, 1)
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, instanceID("0")+computeAPI, body))
	sees("10.0.0.5 10.0.0.6")
	if got := listNames(t, emu, instanceID("1")+"/networkInterfaces"+version); got != "n" {
		t.Errorf("listed are %s", got)
	}
}
