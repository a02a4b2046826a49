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

const computeID = "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute"

// withAvailabilitySets adds the Basic load balancer basic, the Standard one bare, and machines: one and two in
// an availability set, three in another, four in none.
func withAvailabilitySets(t *testing.T, emu *armemu.Emulator) {
	withLoadBalancers(t, emu)
	for vm, set := range map[string]string{"one": "blue", "two": "blue", "three": "green", "four": ""} {
		more := ""
		if set != "" {
			more = `,"availabilitySet":{"id":"` + computeID + `/availabilitySets/` + set + `"}`
		}
		putResource(t, emu, nics+vm, nicInPools(""))
		putResource(t, emu, strings.Replace(group, "Network", "Compute", 1)+"/virtualMachines/"+vm,
			`{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nics+vm+`"}]}`+more+`}}`)
	}
}

func basicViolations() []ruleViolation {
	joined := func(pool string, names ...string) func(*testing.T, *armemu.Emulator) {
		return func(t *testing.T, emu *armemu.Emulator) {
			withAvailabilitySets(t, emu)
			for _, name := range names {
				putResource(t, emu, nics+name, nicInPools("", poolOf(pool)))
			}
		}
	}
	inBasic := nicInPools("", poolOf("basic"))
	outbound := `"frontendIPConfigurations":[%],"backendAddressPools":[{"name":"p"}],"outboundRules":[{"name":"out","properties":{"protocol":"All",
		"frontendIPConfigurations":[{"id":"` + otherLB + `/frontendIPConfigurations/f"}],"backendAddressPool":{"id":"` + otherLB + `/backendAddressPools/p"}}}]`
	zonal := func(sku string) string {
		return strings.Replace(lb(sku, static), `"location"`, `"zones":["1"],"location"`, 1)
	}
	withNew := func(t *testing.T, emu *armemu.Emulator) {
		withLoadBalancers(t, emu)
		putResource(t, emu, pips+"new", lb("Standard", static))
	}
	return []ruleViolation{
		{rule: "basic-one-set", prepare: joined("basic", "one"), id: nics + "three", bad: inBasic, goodID: nics + "two", good: inBasic, message: "different availability set"},
		{rule: "basic-one-set", prepare: joined("basic", "four"), id: nics + "one", bad: inBasic, goodID: nics + "four", good: inBasic, message: "virtualmachines/four"},
		{rule: "basic-one-set", prepare: joined("basic", "one"), id: setID + computeAPI, bad: setBody("Manual", 0, poolOf("basic")), good: setBody("Manual", 0, poolOf("bare")), message: "loadBalancers/basic"},
		{rule: "availability-set-sku", prepare: joined("basic", "one"), id: nics + "two", bad: nicInPools("", poolOf("bare")), goodID: nics + "three", good: nicInPools("", poolOf("bare")), message: "loadBalancers/bare and "},
		{rule: "outbound-rule-needs-standard", prepare: withNew, id: otherLB, bad: lb("Basic", strings.Replace(outbound, "%", publicFrontend("f", "old"), 1)), good: lb("Standard", strings.Replace(outbound, "%", publicFrontend("f", "new"), 1)), message: "Outbound rule out"},
		{rule: "zones-need-standard", id: pips + "zonal", bad: zonal("Basic"), good: zonal("Standard"), message: "sku Basic"},
	}
}

func TestFromBasicToStandard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true, Behavior: worlds.BatchedWrites()})
		ip := func(sku, method string) string {
			return lb(sku, `"publicIPAllocationMethod":"`+method+`"`)
		}
		for _, name := range []string{"kept", "lost"} {
			expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+name, ip("Basic", "Dynamic")))
		}
		time.Sleep(time.Minute)
		if got := readProperty(t, emu, pips+"kept", "ipAddress"); got != "" {
			t.Errorf("a free Dynamic public IP has the address %s", got)
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, lb("Basic", `"frontendIPConfigurations":[`+publicFrontend("a", "kept")+`,`+publicFrontend("b", "lost")+`]`)))
		time.Sleep(time.Minute)
		kept := readProperty(t, emu, pips+"kept", "ipAddress")
		if kept == "" || readProperty(t, emu, pips+"lost", "ipAddress") == "" {
			t.Fatal("a frontend brought no address")
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"kept", ip("Basic", "Static")))
		time.Sleep(time.Minute)
		expectRejected(t, sendRequest(t, emu, http.MethodPut, pips+"kept", ip("Standard", "Static")), 400, "SkuCannotBeChangedOnUpdate")
		expectRejected(t, sendRequest(t, emu, http.MethodPut, pips+"kept", ip("Basic", "Dynamic")), 400, "PublicIPAddressInUseCannotUpdateToDynamic")
		expectAccepted(t, sendRequest(t, emu, http.MethodDelete, otherLB, ""))
		time.Sleep(time.Minute)
		if got := readProperty(t, emu, pips+"lost", "ipAddress"); got != "" {
			t.Errorf("a Dynamic address outlived its frontend: %s", got)
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"kept", ip("Standard", "Static")))
		time.Sleep(time.Minute)
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(publicFrontend("a", "kept"))))
		time.Sleep(time.Minute)
		if got := readProperty(t, emu, pips+"kept", "ipAddress"); got != kept {
			t.Errorf("it had %s, and has %s", kept, got)
		}
	})
}
