// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/lab/armemu"
)

func frontendAddresses(t *testing.T, emu *armemu.Emulator, id string) string {
	t.Helper()
	raw, _ := emu.Get(id)
	var body armnetwork.LoadBalancer
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range body.Properties.FrontendIPConfigurations {
		out = append(out, *f.Properties.PrivateIPAddress)
	}
	return strings.Join(out, " ")
}

func TestPrivateFrontends(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	withInterface(t, emu) // interfaces use 10.0.0.4 and 10.0.0.5, a pool 10.0.0.9
	putResource(t, emu, poolID, poolBody("10.0.0.6"))
	now := func(want string) {
		t.Helper()
		if got := frontendAddresses(t, emu, otherLB); got != want {
			t.Errorf("addresses %s, want %s", got, want)
		}
	}
	write := func(list ...string) {
		t.Helper()
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(list...)))
	}
	x, y := privateFrontend("x", nodesID, ""), privateFrontend("y", nodesID, "")
	write(x, y, privateFrontend("z", nodesID, "10.0.0.7"))
	now("10.0.0.8 10.0.0.10 10.0.0.7")

	// Sending the address back, omitting or changing it has no effect.
	write(strings.Replace(y, `"subnet"`, `"privateIPAddress":"10.0.0.99","subnet"`, 1), x)
	now("10.0.0.10 10.0.0.8")

	// A deleted frontend releases its address; a moved one gets a new one.
	write(y)
	write(y, strings.Replace(privateFrontend("new", nodesID, ""), `"subnet"`, `"privateIPAddress":"10.0.0.99","subnet"`, 1))
	now("10.0.0.10 10.0.0.7")
	write(privateFrontend("y", tinyID, ""), privateFrontend("new", nodesID, ""))
	now("10.1.0.5 10.0.0.7")

	write(y, strings.Replace(privateFrontend("six", vnetID+"/subnets/six", ""), `"subnet"`, `"privateIPAddressVersion":"IPv6","subnet"`, 1))
	now("10.0.0.8 fd00::4")
}

func TestPrivateAddressesAfterFailures(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	withAddresses(t, emu)
	setFaults(t, emu, `rules: [{match: {path: loadBalancers/other, nth: 2}, action: {operation: {fail: {code: InternalServerError, message: m}}}}]`)
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(privateFrontend("x", tinyID, ""))))
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(privateFrontend("y", tinyID, "")))) // fails
	if got := frontendAddresses(t, emu, otherLB); got != "10.1.0.5" {
		t.Errorf("after the failure: %s", got)
	}
	expectRejected(t, sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(privateFrontend("x", tinyID, ""), privateFrontend("y", tinyID, ""), privateFrontend("z", tinyID, ""))), 400, "SubnetIsFull")
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(privateFrontend("x", tinyID, ""), privateFrontend("y", tinyID, "10.1.0.6"))))
}

func TestInterfacesAreInTheirPools(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	withInterface(t, emu)
	pool, entry := userPool("p"), `"backendIPConfigurations":[{"id":"`+nics+`nic/ipConfigurations/ip"}]`
	shows := func() bool { return strings.Contains(sendRequest(t, emu, http.MethodGet, pool, "").raw, entry) }
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pool, `{"properties":{"backendIPConfigurations":[]}}`))
	if !shows() {
		t.Errorf("the pool shows %s", sendRequest(t, emu, http.MethodGet, pool, "").raw)
	}
	if vm := readProperty(t, emu, nics+"nic", "virtualMachine", "id"); !strings.HasSuffix(vm, "/virtualMachines/vm") {
		t.Errorf("the interface shows the machine %q", vm)
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, nics+"nic", strings.Replace(nic(pool), `{"id":"`+pool+`"}`, "", 1)))
	if shows() {
		t.Error("the pool still shows an interface that has left")
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pool, poolBody("10.0.0.8")))
}

const computeGroup = "/subscriptions/" + subscription + "/resourceGroups/rg/providers/Microsoft.Compute"

// Virtual machines do not count as network provider requests.
func TestMachines(t *testing.T) {
	limits := &armemu.Limits{NetworkReads: 1, NetworkWindow: 1 << 40}
	emu := armemu.New(armemu.Options{Throttle: limits})
	vm, instance := computeGroup+"/virtualMachines/vm", computeGroup+"/virtualMachineScaleSets/set/virtualMachines/0"
	putResource(t, emu, vm, `{"location":"eastus","properties":{"availabilitySet":{"id":"`+computeGroup+`/availabilitySets/as"}}}`)
	putResource(t, emu, computeGroup+"/virtualMachineScaleSets/set", `{"location":"eastus"}`)
	putResource(t, emu, instance, `{"properties":{}}`)
	for _, id := range []string{vm, instance, vm} {
		a := sendRequest(t, emu, http.MethodGet, id+"?api-version=2024-07-01", "")
		if a.status != http.StatusOK || !strings.EqualFold(a.stringField("id"), id) {
			t.Errorf("%s: %d %s", id, a.status, a.raw)
		}
	}
	if a := sendRequest(t, emu, http.MethodGet, vm+"?api-version=2024-07-01", ""); !strings.Contains(a.raw, "/availabilitySets/as") {
		t.Errorf("no availability set: %s", a.raw)
	}
	expectRejected(t, sendRequest(t, emu, http.MethodGet, vm, ""), 400, "NoRegisteredProviderFound")
	expectRejected(t, sendRequest(t, emu, http.MethodGet, computeGroup+"/loadBalancers/x?api-version=2024-07-01", ""), 404, "InvalidResourceType")
	expectRejected(t, sendRequest(t, emu, http.MethodGet, computeGroup+"/virtualMachines/none?api-version=2024-07-01", ""), 404, "ResourceNotFound")
}

// Only a list returns the instances.
func TestScaleSetsListTheirMachines(t *testing.T) {
	emu := armemu.New(armemu.Options{})
	set := computeGroup + "/virtualMachineScaleSets/set"
	putResource(t, emu, set, `{"location":"eastus"}`)
	putResource(t, emu, set+"/virtualMachines/0", `{"properties":{}}`)
	for _, r := range []struct{ method, body string }{{http.MethodPut, `{"location":"eastus"}`}, {http.MethodGet, ""}} {
		if a := sendRequest(t, emu, r.method, set+"?api-version=2024-07-01", r.body); a.status != 200 || strings.Contains(a.raw, "virtualMachines/0") || strings.Contains(a.raw, `"virtualMachines"`) {
			t.Errorf("%s: %s", r.method, a.raw)
		}
	}
	if err := emu.Restore(emu.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if a := sendRequest(t, emu, http.MethodGet, set+"/virtualMachines?api-version=2024-07-01", ""); strings.Count(a.raw, set+"/virtualMachines/0") != 1 {
		t.Errorf("%s", a.raw)
	}
}

// A seed from another ARM server, in any order.
func TestSeedReadsBackAsItWas(t *testing.T) {
	source := newCloud(t, armemu.Options{Seed: 3})
	withInterface(t, source)
	putResource(t, source, pips+"r", lb("Standard", static+`,"publicIPPrefix":{"id":"`+pipRanges+`range"}`))
	putResource(t, source, group+"/networkSecurityGroups/nsg", `{"location":"eastus","properties":{"securityRules":[{"name":"r","properties":{"priority":500}}]}}`)
	putResource(t, source, computeGroup+"/virtualMachineScaleSets/set", `{"location":"eastus"}`)
	putResource(t, source, computeGroup+"/virtualMachineScaleSets/set/virtualMachines/0", `{"location":"eastus"}`)
	var resources []struct {
		ID   string          `json:"id"`
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(source.Snapshot(), &resources); err != nil {
		t.Fatal(err)
	}
	for _, child := range []string{nodesID, userPool("p")} {
		body, _ := source.Get(child)
		resources = append(resources, struct {
			ID   string          `json:"id"`
			Body json.RawMessage `json:"body"`
		}{child, body})
	}
	slices.Reverse(resources)
	seed, err := json.Marshal(resources)
	if err != nil {
		t.Fatal(err)
	}
	emu := armemu.New(armemu.Options{Seed: 4})
	if w := sendAdmin(emu, http.MethodPut, "/_emu/snapshot", string(seed)); w.Code != http.StatusNoContent {
		t.Fatal(w.Body)
	}
	for _, r := range resources {
		got, ok := emu.Get(r.ID)
		if !ok {
			t.Errorf("%s is missing", r.ID)
		}
		if diff := cmp.Diff(normalizeBody(t, r.Body), normalizeBody(t, got)); diff != "" {
			t.Errorf("%s (-seed +read):\n%s", r.ID, diff)
		}
	}
	// New addresses avoid seeded ones.
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, nics+"nic", strings.Replace(nic(userPool("p")), `{"id":"`+userPool("p")+`"}`, "", 1)))
	if got := sendRequest(t, emu, http.MethodGet, userPool("p"), "").raw; strings.Contains(got, "networkInterfaces") {
		t.Errorf("the pool still shows %s", got)
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"new", lb("Standard", static)))
	if ip := readProperty(t, emu, pips+"new", "ipAddress"); strings.Contains(string(seed), `"`+ip+`"`) {
		t.Errorf("%s was taken", ip)
	}
}

// Without etags and GUIDs.
func normalizeBody(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "etag")
			delete(v, "resourceGuid")
			for _, below := range v {
				strip(below)
			}
		case []any:
			for _, below := range v {
				strip(below)
			}
		}
	}
	strip(v)
	return v
}
