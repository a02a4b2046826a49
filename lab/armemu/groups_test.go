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

const (
	someGroup      = "/subscriptions/" + subscription + "/resourceGroups/disposable"
	someNetwork    = someGroup + "/providers/Microsoft.Network"
	someMachines   = someGroup + "/providers/Microsoft.Compute/virtualMachines/"
	groupVersion   = "?api-version=2021-04-01"
	machineVersion = "?api-version=2024-07-01"
)

func machine(nic string) string {
	return `{"location":"eastus","properties":{
		"hardwareProfile":{"vmSize":"Standard_B1s"},
		"osProfile":{"computerName":"m","adminUsername":"probe","adminPassword":"hunter2","customData":"c2VjcmV0"},
		"storageProfile":{"imageReference":{"publisher":"Canonical","offer":"ubuntu-24_04-lts","sku":"server","version":"latest"},
			"osDisk":{"createOption":"FromImage","managedDisk":{"storageAccountType":"Standard_LRS"}}},
		"networkProfile":{"networkInterfaces":[{"id":"` + nic + `","properties":{"primary":true}}]}}}`
}

type emulatorScenario struct {
	t   *testing.T
	emu *armemu.Emulator
}

// expectAnswer sends a request and expects this status and, for an error, this code.
func (s emulatorScenario) expectAnswer(status int, code, method, target, body string) rawResponse {
	s.t.Helper()
	a := sendRequest(s.t, s.emu, method, target, body)
	if a.status != status || a.errorCode() != code {
		s.t.Fatalf("%s %s: got %d %s, want %d %s", method, target, a.status, a.raw, status, code)
	}
	return a
}

func (s emulatorScenario) waitForOperations() { time.Sleep(time.Hour) }

func (s emulatorScenario) createResources() {
	s.t.Helper()
	nodes := someNetwork + "/virtualNetworks/net/subnets/nodes"
	pool := someNetwork + "/loadBalancers/nics/backendAddressPools/p"
	nic := `{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{"subnet":{"id":"` + nodes +
		`"},"loadBalancerBackendAddressPools":[{"id":"` + pool + `"}]}}]}}`
	for _, r := range []struct{ id, body string }{
		{someNetwork + "/virtualNetworks/net", `{"location":"eastus","properties":{"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`},
		{someNetwork + "/networkSecurityGroups/closed", `{"location":"eastus"}`},
		{someNetwork + "/loadBalancers/nics", lb("Standard", `"frontendIPConfigurations":[`+privateFrontend("in", nodes, "")+`],"backendAddressPools":[{"name":"p"}]`)},
		{someNetwork + "/networkInterfaces/nic", nic},
		{someMachines + "vm" + machineVersion, machine(someNetwork + "/networkInterfaces/nic")},
	} {
		s.expectAnswer(http.StatusCreated, "", http.MethodPut, r.id, r.body)
		s.waitForOperations()
	}
}

// As a probe of Azure does.
func TestLifeOfAResourceGroup(t *testing.T) {
	for _, strict := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := emulatorScenario{t, armemu.New(armemu.Options{Seed: 1, LatencyScale: 1, StrictResourceGroups: strict})}
			lower := strings.Replace(someGroup, "resourceGroups", "resourcegroups", 1) // as the SDK spells it
			s.expectAnswer(404, "", http.MethodHead, lower+groupVersion, "")
			made := s.expectAnswer(201, "", http.MethodPut, lower+groupVersion, `{"location":"East US","tags":{"made-by":"probe"}}`)
			if made.stringField("id") != someGroup || made.stringField("type") != "Microsoft.Resources/resourceGroups" || made.stringField("location") != "eastus" || made.provisioningState() != "Succeeded" {
				t.Errorf("%s", made.raw)
			}
			s.expectAnswer(200, "", http.MethodPut, lower+groupVersion, `{"location":"eastus","tags":{"made-by":"probe"}}`)
			s.expectAnswer(204, "", http.MethodHead, lower+groupVersion, "")
			s.createResources()
			if held := s.expectAnswer(200, "", http.MethodGet, someGroup+"/resources"+groupVersion, ""); strings.Count(held.raw, `"type":`) != 5 || strings.Contains(held.raw, "properties") {
				t.Errorf("the group holds %s", held.raw)
			}

			gone := s.expectAnswer(202, "", http.MethodDelete, lower+groupVersion, "")
			result := gone.header.Get("Location")
			if gone.header.Get("Retry-After") != "15" || !strings.Contains(result, "/operationresults/") {
				t.Errorf("DELETE answers %v", gone.header)
			}
			if second := s.expectAnswer(202, "", http.MethodDelete, lower+groupVersion, ""); second.header.Get("Location") != result {
				t.Error("a second DELETE is another operation")
			}
			if g := s.expectAnswer(200, "", http.MethodGet, lower+groupVersion, ""); g.provisioningState() != "Deleting" {
				t.Errorf("GET while it goes: %s", g.raw)
			}
			s.expectAnswer(409, "ResourceGroupBeingDeleted", http.MethodPut, someNetwork+"/loadBalancers/late", lb("Standard", ""))
			s.expectAnswer(409, "ResourceGroupBeingDeleted", http.MethodPut, lower+groupVersion, `{"location":"eastus"}`)
			s.expectAnswer(202, "", http.MethodGet, result, "")
			s.waitForOperations()
			s.expectAnswer(200, "", http.MethodGet, result, "")
			s.expectAnswer(404, "ResourceGroupNotFound", http.MethodGet, lower+groupVersion, "")
			if remaining := string(s.emu.Snapshot()); remaining != "[]" {
				t.Errorf("left: %s", remaining)
			}
		})
	}
}

func TestGroupTakesRunningOperationsAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := emulatorScenario{t, armemu.New(armemu.Options{Seed: 1, LatencyScale: 1, LatencyFixed: true})}
		s.createResources()
		done := s.expectAnswer(200, "", http.MethodPut, someNetwork+"/virtualNetworks/net/subnets/nodes", `{"properties":{"addressPrefix":"10.0.0.0/25"}}`)
		s.expectAnswer(202, "", http.MethodDelete, someGroup+groupVersion, "")
		setFaults(t, s.emu, `rules: [{match: {kind: delete}, action: {operation: {stuck: true}}}]`)
		stuck := s.expectAnswer(202, "", http.MethodDelete, someMachines+"vm"+machineVersion, "")
		s.waitForOperations()
		if p := s.expectAnswer(200, "", http.MethodGet, stuck.header.Get("Azure-AsyncOperation"), ""); p.stringField("status") != "Succeeded" {
			t.Errorf("the machine is gone, its DELETE is %s", p.raw)
		}
		if p := s.expectAnswer(200, "", http.MethodGet, done.header.Get("Azure-AsyncOperation"), ""); p.stringField("status") != "Succeeded" {
			t.Errorf("what was done before the group went is %s", p.raw)
		}
		s.expectAnswer(201, "", http.MethodPut, someNetwork+"/loadBalancers/new", lb("Standard", ""))
		s.expectAnswer(200, "", http.MethodGet, someGroup+groupVersion, "")
	})
}

// The password is never shown.
func TestMachineHoldsItsInterface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := emulatorScenario{t, armemu.New(armemu.Options{Seed: 1, LatencyScale: 1})}
		s.createResources()
		if vm := s.expectAnswer(200, "", http.MethodGet, someMachines+"vm"+machineVersion, ""); !strings.Contains(vm.raw, `"offer":"ubuntu-24_04-lts"`) ||
			strings.Contains(vm.raw, "hunter2") || strings.Contains(vm.raw, "c2VjcmV0") {
			t.Errorf("%s", vm.raw)
		}
		s.expectAnswer(400, "NicInUse", http.MethodDelete, someNetwork+"/networkInterfaces/nic", "")
		s.expectAnswer(202, "", http.MethodDelete, someMachines+"vm"+machineVersion, "")
		s.waitForOperations()
		if a := sendRequest(t, s.emu, http.MethodDelete, someNetwork+"/networkInterfaces/nic", ""); a.status >= 300 {
			t.Errorf("the freed interface: %d %s", a.status, a.raw)
		}
	})
}

func TestGroupsAreListed(t *testing.T) {
	emu := armemu.New(armemu.Options{})
	putResource(t, emu, someGroup, `{"location":"eastus","tags":{"made-by":"probe"}}`)
	putResource(t, emu, vnetID, `{"location":"eastus"}`)
	putResource(t, emu, "/subscriptions/other/resourceGroups/else", `{"location":"westus"}`)
	all := "/subscriptions/" + subscription + "/resourcegroups" + groupVersion
	for filter, want := range map[string]string{
		"": "disposable rg", "tagName eq 'MADE-BY'": "disposable", "tagName eq 'made-by' and tagValue eq 'probe'": "disposable",
		"tagName eq 'made-by' and tagValue eq 'other'": "",
	} {
		a := sendRequest(t, emu, http.MethodGet, all+"&$filter="+strings.ReplaceAll(filter, " ", "%20"), "")
		var names []string
		list, _ := a.body["value"].([]any)
		for _, g := range list {
			g, _ := g.(map[string]any)
			name, _ := g["name"].(string)
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %q, want %q", filter, got, want)
		}
	}
	emulatorScenario{t, emu}.expectAnswer(400, "InvalidFilterInQueryString", http.MethodGet, all+"&$filter=name", "")
}

func TestGroupRefusals(t *testing.T) {
	s := emulatorScenario{t, armemu.New(armemu.Options{StrictResourceGroups: true})}
	missing := "/subscriptions/" + subscription + "/resourceGroups/none"
	below := missing + "/providers/Microsoft.Network/"
	for _, r := range []struct{ method, id string }{
		{http.MethodGet, missing + groupVersion},
		{http.MethodDelete, missing + groupVersion},
		{http.MethodGet, missing + "/resources" + groupVersion},
		{http.MethodGet, below + "loadBalancers"},
		{http.MethodGet, below + "loadBalancers/x"},
		{http.MethodGet, below + "loadBalancers/x/backendAddressPools/p"},
		{http.MethodDelete, below + "loadBalancers/x"},
		{http.MethodPut, below + "loadBalancers/x"},
	} {
		if a := s.expectAnswer(404, "ResourceGroupNotFound", r.method, r.id, lb("Standard", "")); !strings.Contains(a.raw, "Resource group 'none' could not be found.") {
			t.Errorf("%s", a.raw)
		}
	}
	s.expectAnswer(400, "LocationRequired", http.MethodPut, missing+groupVersion, `{}`)
	s.expectAnswer(400, "InvalidRequestContent", http.MethodPut, missing+groupVersion, `[]`)
	s.expectAnswer(201, "", http.MethodPut, missing+groupVersion, `{"location":"eastus"}`)
	s.expectAnswer(409, "InvalidResourceGroupLocation", http.MethodPut, missing+groupVersion, `{"location":"westus"}`)
	s.expectAnswer(201, "", http.MethodPut, below+"loadBalancers/x", lb("Standard", ""))
	s.expectAnswer(404, "NotFound", http.MethodGet, "/subscriptions/"+subscription+"/operationresults/none"+groupVersion, "")
}

func TestSnapshotCarriesGroups(t *testing.T) {
	emu := armemu.New(armemu.Options{StrictResourceGroups: true})
	putResource(t, emu, someGroup, `{"location":"eastus","tags":{"made-by":"probe"}}`)
	putResource(t, emu, someNetwork+"/loadBalancers/x", lb("Standard", ""))
	before := emu.Snapshot()
	other := armemu.New(armemu.Options{StrictResourceGroups: true})
	if err := other.Restore(before); err != nil {
		t.Fatal(err)
	}
	if got := string(other.Snapshot()); got != string(before) {
		t.Errorf("got %s, want %s", got, before)
	}
	if g, ok := other.Get(someGroup); !ok || !strings.Contains(string(g), `"made-by":"probe"`) {
		t.Errorf("%s", g)
	}
}
