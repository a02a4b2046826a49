// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

func setBody(mode string, capacity int, pools ...string) string {
	refs := make([]string, len(pools))
	for i, p := range pools {
		refs[i] = `{"id":"` + p + `"}`
	}
	return fmt.Sprintf(`{"location":"eastus","sku":{"name":"Standard_D2s_v3","capacity":%d},"properties":{"upgradePolicy":{"mode":%q,
		"rollingUpgradePolicy":{"maxBatchInstancePercent":50,"pauseTimeBetweenBatches":"PT1M"}},
		"virtualMachineProfile":{"networkProfile":{"networkInterfaceConfigurations":[{"name":"n","properties":{"primary":true,"ipConfigurations":[
		{"name":"ip","properties":{"subnet":{"id":%q},"loadBalancerBackendAddressPools":[%s]}}]}}]}}}}`,
		capacity, mode, nodesID, strings.Join(refs, ","))
}

type scaleSetScenario struct {
	t   *testing.T
	emu *armemu.Emulator
}

func newScaleSetScenario(t *testing.T, mode string, machines int) scaleSetScenario {
	s := scaleSetScenario{t, newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true})}
	s.sendStep(201, http.MethodPut, setID, setBody(mode, machines))
	time.Sleep(time.Minute)
	return s
}

func (s scaleSetScenario) sendStep(status int, method, id, body string) rawResponse {
	s.t.Helper()
	a := sendRequest(s.t, s.emu, method, id+computeAPI, body)
	if a.status != status {
		s.t.Errorf("%s %s: %d %s", method, id, a.status, a.raw)
	}
	return a
}

func (s scaleSetScenario) latestInstances() string {
	s.t.Helper()
	var up []string
	for n := range strings.FieldsSeq(listNames(s.t, s.emu, setID+"/virtualMachines"+computeAPI)) {
		if strings.Contains(s.sendStep(200, http.MethodGet, instanceID(n), "").raw, `"latestModelApplied":true`) {
			up = append(up, n)
		}
	}
	return strings.Join(up, " ")
}

func (s scaleSetScenario) expectState(latest string, members int) {
	s.t.Helper()
	if got := s.latestInstances(); got != latest {
		s.t.Errorf("the model is on %q, want %q", got, latest)
	}
	if got := strings.Count(poolAdminStates(s.t, s.emu, poolID), "="); got != members {
		s.t.Errorf("the pool shows %d members, want %d", got, members)
	}
}

func TestCapacityMakesMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScaleSetScenario(t, "Manual", 2)
		s.expectState("0 1", 0)
		s.sendStep(200, http.MethodPatch, setID, `{"sku":{"capacity":3}}`)
		s.expectState("0 1", 0)
		time.Sleep(time.Minute)
		s.expectState("0 1 2", 0)
		a := s.sendStep(200, http.MethodGet, instanceID("2"), "")
		if a.stringField("instanceId") != "2" || !strings.Contains(a.raw, nodesID) || strings.Contains(a.raw, "privateIPAddress") {
			t.Errorf("the machine is %s", a.raw)
		}
		expectRejected(t, sendRequest(t, s.emu, http.MethodDelete, nodesID, ""), 400, "InUseSubnetCannotBeDeleted")
		s.sendStep(200, http.MethodPatch, setID, `{"sku":{"capacity":1}}`)
		time.Sleep(time.Minute)
		s.expectState("0", 0)
	})
}

func TestPatchOfAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScaleSetScenario(t, "Manual", 1)
		a := s.sendStep(200, http.MethodPatch, setID, `{"tags":{"a":"b"},"properties":{"virtualMachineProfile":{"priority":"Spot"}}}`)
		if a.provisioningState() != "Updating" || a.header.Get("Retry-After") != "10" {
			t.Errorf("%s, Retry-After %q", a.provisioningState(), a.header.Get("Retry-After"))
		}
		poll, err := url.Parse(a.header.Get("Azure-AsyncOperation"))
		if err != nil || !poll.Query().Has("p") || !strings.Contains(poll.Path, "/Microsoft.Compute/") {
			t.Errorf("the operation is %s", poll)
		}
		time.Sleep(time.Minute)
		a = s.sendStep(200, http.MethodGet, setID, "")
		for _, want := range []string{`"tags":{"a":"b"}`, `"priority":"Spot"`, nodesID, `"mode":"Manual"`} {
			if !strings.Contains(a.raw, want) {
				t.Errorf("no %s in %s", want, a.raw)
			}
		}
		s.sendStep(200, http.MethodPatch, setID, `{"properties":{"virtualMachineProfile":{"priority":null}}}`)
		if a = s.sendStep(200, http.MethodGet, setID, ""); strings.Contains(a.raw, "priority") {
			t.Errorf("null takes nothing away: %s", a.raw)
		}
		expectRejected(t, sendRequest(t, s.emu, http.MethodPatch, setID+"2"+computeAPI, "{}"), 404, "ResourceNotFound")
		expectRejected(t, sendRequest(t, s.emu, http.MethodPatch, instanceID("0")+computeAPI, "{}"), 405, "MethodNotAllowed")
	})
}

func TestPutOfAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScaleSetScenario(t, "Manual", 2)
		s.sendStep(200, http.MethodPut, setID, `{"location":"eastus","properties":{"virtualMachineProfile":{"priority":"Spot"}}}`)
		time.Sleep(time.Minute)
		a := s.sendStep(200, http.MethodGet, setID, "")
		for _, want := range []string{`"priority":"Spot"`, nodesID, `"mode":"Manual"`, `"capacity":2`} {
			if !strings.Contains(a.raw, want) {
				t.Errorf("no %s in %s", want, a.raw)
			}
		}
	})
}

// Two instances may be written at once; a DELETE always may.
func TestScaleSetsRefuseConcurrentWrites(t *testing.T) {
	tag := `{"location":"eastus","tags":{"a":"b"}}`
	upgrade := `{"instanceIds":["*"]}`
	type request struct{ method, id, body string }
	set, single, other := request{http.MethodPatch, setID, `{"tags":{}}`}, request{http.MethodPut, instanceID("0"), tag}, request{http.MethodPut, instanceID("1"), tag}
	action := request{http.MethodPost, setID + "/manualupgrade", upgrade}
	for _, step := range []struct {
		first, second request
		status        int
	}{
		{set, set, 409},
		{set, single, 409},
		{set, action, 409},
		{single, set, 409},
		{single, single, 409},
		{single, action, 409},
		{action, single, 409},
		{action, action, 409},
		{single, other, 200},
		{set, request{http.MethodDelete, setID, ""}, 202},
		{single, request{http.MethodDelete, instanceID("0"), ""}, 202},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScaleSetScenario(t, "Manual", 2)
			sendRequest(t, s.emu, step.first.method, step.first.id+computeAPI, step.first.body)
			a := s.sendStep(step.status, step.second.method, step.second.id, step.second.body)
			if step.status == 409 && (a.errorCode() != "Conflict" || strings.Contains(a.raw, `"details"`) || a.header.Get("Retry-After") != "") {
				t.Errorf("%s", a.raw)
			}
			time.Sleep(5 * time.Minute)
			if step.status == 409 {
				a = sendRequest(t, s.emu, step.second.method, step.second.id+computeAPI, step.second.body)
				if a.status != 200 && a.status != 202 {
					t.Errorf("later: %d %s", a.status, a.raw)
				}
			}
		})
	}
}

func TestFlexibleScaleSets(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	s := scaleSetScenario{t, emu}
	putResource(t, emu, setID, strings.Replace(setBody("Manual", 5), `"properties":{`, `"properties":{"orchestrationMode":"Flexible",`, 1))
	putResource(t, emu, computeGroup+"/virtualMachines/a", `{"location":"eastus","properties":{"virtualMachineScaleSet":{"id":"`+setID+`"}}}`)
	putResource(t, emu, computeGroup+"/virtualMachines/b", `{"location":"eastus"}`)
	if a := s.sendStep(200, http.MethodGet, setID, ""); !strings.Contains(a.raw, `"Flexible"`) {
		t.Errorf("%s", a.raw)
	}
	s.sendStep(200, http.MethodPatch, setID, `{"tags":{"a":"b"}}`)
	if got := listNames(t, emu, setID+"/virtualMachines"+computeAPI); got != "" {
		t.Errorf("below it are %s", got)
	}
	filter := url.QueryEscape("'virtualMachineScaleSet/id' eq '" + setID + "'")
	if got := listNames(t, emu, computeGroup+"/virtualMachines"+computeAPI+"&$filter="+filter); got != "a" {
		t.Errorf("the filter finds %s", got)
	}
	expectRejected(t, sendRequest(t, emu, http.MethodGet, computeGroup+"/virtualMachines"+computeAPI+"&$filter=name", ""), 400, "InvalidFilterInQueryString")
	expectRejected(t, sendRequest(t, emu, http.MethodPost, setID+"/manualupgrade"+computeAPI, `{"instanceIds":["*"]}`), 409, "OperationNotAllowed")
}
