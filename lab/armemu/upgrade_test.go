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

func TestManualUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScaleSetScenario(t, "Manual", 3)
		s.sendStep(200, http.MethodPut, setID, setBody("Manual", 3, poolID))
		time.Sleep(time.Minute)
		s.expectState("", 0)
		a := s.sendStep(202, http.MethodPost, setID+"/manualupgrade", `{"instanceIds":["1"]}`)
		if a.raw != "" || a.header.Get("Azure-AsyncOperation") == "" || a.header.Get("Location") == "" || a.header.Get("Retry-After") != "10" {
			t.Errorf("%q %v", a.raw, a.header)
		}
		if got := s.sendStep(200, http.MethodGet, instanceID("1"), "").provisioningState(); got != "Updating" {
			t.Errorf("the machine is %s", got)
		}
		s.expectState("", 0)
		before := readEtag(t, s.emu, lbID)
		time.Sleep(46 * time.Second)
		s.expectState("1", 1)
		if got := s.sendStep(200, http.MethodGet, instanceID("1"), "").provisioningState(); got != "Succeeded" || readEtag(t, s.emu, lbID) == before {
			t.Errorf("the machine is %s, or the load balancer's etag has not changed", got)
		}
		if poll := sendRequest(t, s.emu, http.MethodGet, a.header.Get("Location"), ""); poll.status != 204 {
			t.Errorf("the result is %d %s", poll.status, poll.raw)
		}
		s.sendStep(202, http.MethodPost, setID+"/ManualUpgrade", `{"instanceIds":["*"]}`)
		time.Sleep(time.Minute)
		s.expectState("0 1 2", 3)
		if states := poolAdminStates(t, s.emu, poolID); strings.Contains(states, "ip=") {
			t.Errorf("entries of a scale set have GUIDs for names: %s", states)
		}
	})
}

func TestManualUpgradeRefusals(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	putResource(t, emu, setID, setBody("Manual", 1))
	putResource(t, emu, instanceID("0"), `{"location":"eastus"}`)
	for body, code := range map[string]string{
		`{}`:                    "InvalidRequestFormat",
		``:                      "InvalidRequestFormat",
		`{"instanceIds":[]}`:    "InvalidRequestFormat",
		`{"instanceIds":["7"]}`: "InvalidParameter",
		`{"instanceIds":[0]}`:   "InvalidParameter",
		`no JSON`:               "InvalidRequestFormat",
	} {
		expectRejected(t, sendRequest(t, emu, http.MethodPost, setID+"/manualupgrade"+computeAPI, body), 400, code)
	}
	expectRejected(t, sendRequest(t, emu, http.MethodPost, setID+"2/manualupgrade"+computeAPI, `{}`), 404, "ResourceNotFound")
	expectRejected(t, sendRequest(t, emu, http.MethodGet, setID+"/manualupgrade"+computeAPI, ``), 405, "MethodNotAllowed")
	expectRejected(t, sendRequest(t, emu, http.MethodPost, instanceID("0")+"/manualupgrade"+computeAPI, `{}`), 404, "InvalidResourceType")
}

func TestUpgradesByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScaleSetScenario(t, "Automatic", 4)
		s.sendStep(200, http.MethodPut, setID, setBody("Automatic", 4, poolID))
		s.expectState("", 0)
		time.Sleep(29 * time.Second)
		s.expectState("0 1 2 3", 4)
		s.sendStep(200, http.MethodPut, setID, setBody("Automatic", 4, poolID))
		if got := s.sendStep(200, http.MethodGet, instanceID("0"), "").provisioningState(); got != "Succeeded" {
			t.Errorf("the model is the same, and the machine %s", got)
		}

		s = newScaleSetScenario(t, "Rolling", 4)
		a := s.sendStep(200, http.MethodPut, setID, setBody("Rolling", 4, poolID))
		time.Sleep(44 * time.Second) // 28.5 s the write, 15 s two machines, 60 s until the next
		s.expectState("0 1", 2)
		if poll := sendRequest(t, s.emu, http.MethodGet, a.header.Get("Azure-AsyncOperation"), ""); poll.stringField("status") != "InProgress" {
			t.Errorf("%s", poll.raw)
		}
		time.Sleep(74 * time.Second)
		s.expectState("0 1", 2)
		time.Sleep(2 * time.Second)
		s.expectState("0 1 2 3", 4)
		if poll := sendRequest(t, s.emu, http.MethodGet, a.header.Get("Azure-AsyncOperation"), ""); poll.stringField("status") != "Succeeded" {
			t.Errorf("%s", poll.raw)
		}
	})
}

func TestUpgradesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScaleSetScenario(t, "Automatic", 2)
		setFaults(t, s.emu, `rules:
- {match: {kind: put, path: "virtualMachineScaleSets/set"}, action: {operation: {fail: {code: InternalExecutionError}}}}
- {match: {kind: action, path: "manualupgrade"}, action: {operation: {fail: {code: InternalExecutionError}}}}`)
		s.sendStep(200, http.MethodPut, setID, setBody("Automatic", 2, poolID))
		s.expectState("", 0)
		time.Sleep(time.Minute)
		s.expectState("0 1", 0)
		setFaults(t, s.emu, `rules: [{match: {method: POST, path: "manualupgrade"}, action: {operation: {fail: {code: InternalExecutionError}}}}]`)
		s.sendStep(200, http.MethodPut, setID, setBody("Manual", 2, poolID))
		time.Sleep(time.Minute)
		a := s.sendStep(202, http.MethodPost, setID+"/manualupgrade", `{"instanceIds":["*"]}`)
		time.Sleep(time.Minute)
		s.expectState("", 0)
		if poll := sendRequest(t, s.emu, http.MethodGet, a.header.Get("Azure-AsyncOperation"), ""); poll.stringField("status") != "Failed" {
			t.Errorf("%s", poll.raw)
		}
		if got := s.sendStep(200, http.MethodGet, instanceID("0"), "").provisioningState(); got != "Succeeded" {
			t.Errorf("the machine is %s", got)
		}
	})
}

func TestSnapshotCarriesScaleSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScaleSetScenario(t, "Manual", 2)
		s.sendStep(200, http.MethodPut, setID, setBody("Manual", 2, poolID))
		time.Sleep(time.Minute)
		s.sendStep(202, http.MethodPost, setID+"/manualupgrade", `{"instanceIds":["0"]}`)
		time.Sleep(time.Minute)
		before := string(s.emu.Snapshot())
		if !strings.Contains(before, "privateIPAddress") {
			t.Error("no addresses of machines")
		}
		if err := s.emu.Restore([]byte(before)); err != nil {
			t.Fatal(err)
		}
		s.expectState("0", 1)
		if after := string(s.emu.Snapshot()); after != before {
			t.Errorf("before %s\nafter %s", before, after)
		}
	})
}
