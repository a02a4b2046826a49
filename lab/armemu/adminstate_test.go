// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/worlds"
)

func poolAdminStates(t testing.TB, emu *armemu.Emulator, id string) string {
	t.Helper()
	raw, ok := emu.Get(id)
	var pool armnetwork.BackendAddressPool
	if err := json.Unmarshal(raw, &pool); err != nil || !ok {
		t.Fatalf("%s: %t, %v", id, ok, err)
	}
	var states []string
	for _, a := range pool.Properties.LoadBalancerBackendAddresses {
		state := "-"
		if s := a.Properties.AdminState; s != nil {
			state = string(*s)
		}
		states = append(states, *a.Name+"="+state)
	}
	return strings.Join(states, " ")
}

func poolEntry(name, target, state string) string {
	if state != "" {
		target += `,"adminState":"` + state + `"`
	}
	return `{"name":"` + name + `","properties":{` + strings.TrimPrefix(target, ",") + `}}`
}

func ip(last int) string { return fmt.Sprintf(`"ipAddress":"10.0.0.%d"`, last) }

func TestAdminStateIsStored(t *testing.T) {
	emu := newCloud(t, armemu.Options{Behavior: worlds.BatchedWrites()})
	write := func(id, body string, status int) {
		t.Helper()
		if a := sendRequest(t, emu, http.MethodPut, id, body); a.status != status {
			t.Fatalf("%d %s", a.status, a.raw)
		}
	}
	inline := func(list ...string) string {
		return lbBody(strings.Replace(poolWith(inVNet, list...), "{", `{"name":"web",`, 1))
	}
	for _, step := range []struct {
		id, body string
		status   int
		want     string
	}{
		{poolID, poolWith(inVNet, poolEntry("a", ip(1), "Down"), poolEntry("b", ip(2), "Up"), poolEntry("c", ip(3), "")), 200, "a=Down b=Up c=-"},
		{poolID, poolWith(inVNet, poolEntry("a", ip(1), ""), poolEntry("b", ip(2), "None")), 200, "a=- b=None"},
		{lbID, inline(poolEntry("a", ip(1), "Up"), poolEntry("b", ip(2), "Down")), 200, "a=Up b=Down"},
		{lbID, inline(poolEntry("a", ip(1), "Up"), poolEntry("b", ip(2), "down")), 400, "a=Up b=Down"},
		{lbID, inline(poolEntry("a", ip(1), "")), 200, "a=-"},
	} {
		write(step.id, step.body, step.status)
		if got := poolAdminStates(t, emu, poolID); got != step.want {
			t.Errorf("after %s:\n%s, want %s", step.body, got, step.want)
		}
	}
}

const setNIC = "/subscriptions/" + subscription + "/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/s/virtualMachines/0/networkInterfaces/n/ipConfigurations/ip"

// A write of the pool cannot change its members, but sets admin states by reference or by name; a
// write of the load balancer removes omitted ones.
func TestAdminStateOfInterfaces(t *testing.T) {
	emu := newCloud(t, armemu.Options{Behavior: worlds.BatchedWrites()})
	withInterface(t, emu)
	pool := userPool("p")
	putResource(t, emu, nics+"two", nic(pool))
	ref := func(name string) string {
		return `"networkInterfaceIPConfiguration":{"id":"` + strings.ToUpper(nics+name+"/ipConfigurations/ip") + `"}`
	}
	balancer := func(list ...string) string {
		return lb("Standard", internalFrontends+`,"backendAddressPools":[{"name":"q"},`+strings.Replace(poolWith("", list...), "{", `{"name":"p",`, 1)+`]`)
	}
	for _, step := range []struct{ about, id, body, want string }{
		{"nothing was written yet", "", "", "rg_nicip=- rg_twoip=-"},
		{"by reference", pool, poolWith("", poolEntry("rg_nicip", ref("nic"), "Down"), poolEntry("rg_twoip", ref("two"), "")), "rg_nicip=Down rg_twoip=-"},
		{"by name, in the load balancer", group + "/loadBalancers/user", balancer(poolEntry("rg_twoip", "", "Down"), poolEntry("rg_nicip", ref("nic"), "None")), "rg_twoip=Down rg_nicip=None"},
		{"nobody is left out by the load balancer", group + "/loadBalancers/user", balancer(), "rg_twoip=- rg_nicip=-"},
		{"by name", pool, poolWith("", poolEntry("RG_nicip", "", "Down"), poolEntry("rg_twoip", "", "")), "RG_nicip=Down rg_twoip=-"},
		{"one leaves", nics + "nic", nic(userPool("q")), "rg_twoip=-"},
		{"and joins again, as if new", nics + "nic", nic(pool), "rg_twoip=- rg_nicip=-"},
		{"it is Down", pool, poolWith("", poolEntry("rg_twoip", "", "Down"), poolEntry("rg_nicip", "", "")), "rg_twoip=Down rg_nicip=-"},
		{"whatever its interface's writers do", nics + "two", nic(pool), "rg_twoip=Down rg_nicip=-"},
		{"and deleted", nics + "two", "DELETE", "rg_nicip=-"},
	} {
		method := http.MethodPut
		if step.body == "DELETE" {
			method, step.body = http.MethodDelete, ""
		}
		if step.id != "" {
			if a := sendRequest(t, emu, method, step.id, step.body); a.status >= 300 {
				t.Fatalf("%s: %s", step.about, a.raw)
			}
		}
		if got := poolAdminStates(t, emu, pool); got != step.want {
			t.Errorf("%s: %s, want %s", step.about, got, step.want)
		}
	}
	if a := sendRequest(t, emu, http.MethodPut, pool, poolWith(inVNet, poolEntry("rg_nicip", ip(9), ""))); a.status != http.StatusBadRequest {
		t.Errorf("an address by the name of an interface: %s", a.raw)
	}
	snapshot := string(emu.Snapshot())
	other := armemu.New(armemu.Options{})
	if err := other.Restore([]byte(snapshot)); err != nil || string(other.Snapshot()) != snapshot {
		t.Errorf("restored: %v\n%s\nwant\n%s", err, other.Snapshot(), snapshot)
	}
}

// The name is a stable GUID.
func TestEntryOfAScaleSet(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	putResource(t, emu, poolID, `{"properties":{"backendIPConfigurations":[{"id":"`+setNIC+`"}]}}`)
	name, _, _ := strings.Cut(poolAdminStates(t, emu, poolID), "=")
	if len(name) != 36 || strings.Count(name, "-") != 4 {
		t.Errorf("name %q", name)
	}
	if a := sendRequest(t, emu, http.MethodPut, poolID, poolWith("", poolEntry(name, "", "Down"))); a.status >= 300 || !strings.Contains(a.raw, setNIC) {
		t.Fatal(a.raw)
	}
	if got := poolAdminStates(t, emu, poolID); got != name+"=Down" {
		t.Errorf("%s after a write by name", got)
	}
}

// An interface that is not modeled never dies.
func TestNewFlowsToInterfaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFlowScenario(t, twoProbes, armemu.Options{})
		s.writePool()
		join := func(name, address string) {
			putResource(t, s.emu, nics+name, strings.Replace(nic(poolID), `"subnet"`, `"privateIPAllocationMethod":"Static","privateIPAddress":"`+address+`","subnet"`, 1))
		}
		join("n4", "10.0.0.4")
		join("n5", "10.0.0.5")
		s.emu.SetAlive(netip.MustParseAddr("10.0.0.4"), false)
		s.waitUntil(3)
		s.expectFlows("rg_n4ip rg_n5ip", 1.5, 0)
		join("n6", "10.0.0.6")
		s.waitUntil(6)
		s.expectFlows("rg_n4ip rg_n5ip rg_n6ip", 2.5, 0)
		if a := sendRequest(t, s.emu, http.MethodPut, poolID, poolWith("", poolEntry("rg_n4ip", "", "Down"), poolEntry("rg_n5ip", "", ""), poolEntry("rg_n6ip", "", ""))); a.status >= 300 {
			t.Fatal(a.raw)
		}
		s.expectFlows("rg_n5ip rg_n6ip", 2.5, 0)
		s.emu.SetAlive(netip.MustParseAddr("10.0.0.5"), false)
		if a := sendRequest(t, s.emu, http.MethodDelete, nics+"n5", ""); a.status >= 300 {
			t.Fatal(a.raw)
		}
		s.waitUntil(60)
		s.expectFlows("rg_n6ip", 2.5, 0)
	})
}

// Two operations end between two reads: the interface's after 5 s, the failed write's after 27.
func TestNewFlowsFollowTheEndsOfOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFlowScenario(t, twoProbes, armemu.Options{LatencyScale: 1, Behavior: worlds.BatchedWrites()})
		s.writePool()
		s.waitUntil(20)
		for _, name := range []string{"n4", "n5"} {
			putResource(t, s.emu, nics+name, strings.Replace(nic(poolID), `"subnet"`, `"privateIPAllocationMethod":"Static","privateIPAddress":"`+nodeIP(name)+`","subnet"`, 1))
		}
		setFaults(t, s.emu, `rules: [{match: {method: PUT}, action: {operation: {fail: {code: InternalServerError}}}}]`)
		s.killNodes("n4")
		body := lbBody(strings.Replace(poolWith("", poolEntry("rg_n5ip", "", "Down")), "{", `{"name":"web",`, 1))
		body = strings.Replace(body, `{"name":"p"}`, `{"name":"p","properties":{`+twoProbes+`}}`, 1)
		for _, a := range []rawResponse{sendRequest(t, s.emu, http.MethodPut, lbID, body), sendRequest(t, s.emu, http.MethodDelete, nics+"n4", "")} {
			if a.status >= 300 {
				t.Fatal(a.raw)
			}
		}
		s.waitUntil(60)
		s.expectFlows("rg_n5ip", 5, 22)
	})
}

func TestNewFlowsToUnknownInterfaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFlowScenario(t, twoProbes, armemu.Options{})
		putResource(t, s.emu, poolID, `{"properties":{"backendIPConfigurations":[{"id":"`+setNIC+`"}]}}`)
		s.emu.SetAlive(netip.MustParseAddr("10.0.0.4"), false)
		time.Sleep(time.Minute)
		flows := s.emu.Flows(time.Time{}, time.Now())
		if a := flows[0].Addresses[0]; a.IP != "" || !a.Alive || !a.TakesNewFlows {
			t.Errorf("%+v", a)
		}
	})
}
