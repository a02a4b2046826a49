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

// withSets adds the Basic load balancer basic, the Standard one bare, and machines: one and two in
// an availability set, three in another, four in none.
func withSets(t *testing.T, emu *armemu.Emulator) {
	withBalancers(t, emu)
	for vm, set := range map[string]string{"one": "blue", "two": "blue", "three": "green", "four": ""} {
		more := ""
		if set != "" {
			more = `,"availabilitySet":{"id":"` + computeID + `/availabilitySets/` + set + `"}`
		}
		put(t, emu, nics+vm, nicIn(""))
		put(t, emu, strings.Replace(group, "Network", "Compute", 1)+"/virtualMachines/"+vm,
			`{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nics+vm+`"}]}`+more+`}}`)
	}
}

func basicBreaches() []breach {
	joined := func(pool string, names ...string) func(*testing.T, *armemu.Emulator) {
		return func(t *testing.T, emu *armemu.Emulator) {
			withSets(t, emu)
			for _, name := range names {
				put(t, emu, nics+name, nicIn("", poolOf(pool)))
			}
		}
	}
	inBasic := nicIn("", poolOf("basic"))
	outbound := `"frontendIPConfigurations":[%],"backendAddressPools":[{"name":"p"}],"outboundRules":[{"name":"out","properties":{"protocol":"All",
		"frontendIPConfigurations":[{"id":"` + otherLB + `/frontendIPConfigurations/f"}],"backendAddressPool":{"id":"` + otherLB + `/backendAddressPools/p"}}}]`
	zonal := func(sku string) string {
		return strings.Replace(lb(sku, static), `"location"`, `"zones":["1"],"location"`, 1)
	}
	withNew := func(t *testing.T, emu *armemu.Emulator) {
		withBalancers(t, emu)
		put(t, emu, pips+"new", lb("Standard", static))
	}
	return []breach{
		{rule: "basic-one-set", prepare: joined("basic", "one"), id: nics + "three", bad: inBasic, goodID: nics + "two", good: inBasic, message: "different availability set"},
		{rule: "basic-one-set", prepare: joined("basic", "four"), id: nics + "one", bad: inBasic, goodID: nics + "four", good: inBasic, message: "virtualmachines/four"},
		{rule: "basic-one-set", prepare: joined("basic", "one"), id: setID + computeAPI, bad: setBody("Manual", 0, poolOf("basic")), good: setBody("Manual", 0, poolOf("bare")), message: "loadBalancers/basic"},
		{rule: "availability-set-sku", prepare: joined("basic", "one"), id: nics + "two", bad: nicIn("", poolOf("bare")), goodID: nics + "three", good: nicIn("", poolOf("bare")), message: "loadBalancers/bare and "},
		{rule: "outbound-rule-needs-standard", prepare: withNew, id: otherLB, bad: lb("Basic", strings.Replace(outbound, "%", public("f", "old"), 1)), good: lb("Standard", strings.Replace(outbound, "%", public("f", "new"), 1)), message: "Outbound rule out"},
		{rule: "zones-need-standard", id: pips + "zonal", bad: zonal("Basic"), good: zonal("Standard"), message: "sku Basic"},
	}
}

// A Dynamic address is released with its frontend, a Static one is not; only a free Static public
// IP can become Standard.
func TestFromBasicToStandard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true, Behaviour: worlds.Taking()})
		ip := func(sku, method string) string {
			return lb(sku, `"publicIPAllocationMethod":"`+method+`"`)
		}
		for _, name := range []string{"kept", "lost"} {
			accepted(t, send(t, emu, http.MethodPut, pips+name, ip("Basic", "Dynamic")))
		}
		time.Sleep(time.Minute)
		if got := get(t, emu, pips+"kept", "ipAddress"); got != "" {
			t.Errorf("a free Dynamic public IP has the address %s", got)
		}
		accepted(t, send(t, emu, http.MethodPut, otherLB, lb("Basic", `"frontendIPConfigurations":[`+public("a", "kept")+`,`+public("b", "lost")+`]`)))
		time.Sleep(time.Minute)
		kept := get(t, emu, pips+"kept", "ipAddress")
		if kept == "" || get(t, emu, pips+"lost", "ipAddress") == "" {
			t.Fatal("a frontend brought no address")
		}
		accepted(t, send(t, emu, http.MethodPut, pips+"kept", ip("Basic", "Static")))
		time.Sleep(time.Minute)
		refused(t, send(t, emu, http.MethodPut, pips+"kept", ip("Standard", "Static")), 400, "SkuCannotBeChangedOnUpdate")
		refused(t, send(t, emu, http.MethodPut, pips+"kept", ip("Basic", "Dynamic")), 400, "PublicIPAddressInUseCannotUpdateToDynamic")
		accepted(t, send(t, emu, http.MethodDelete, otherLB, ""))
		time.Sleep(time.Minute)
		if got := get(t, emu, pips+"lost", "ipAddress"); got != "" {
			t.Errorf("a Dynamic address outlived its frontend: %s", got)
		}
		accepted(t, send(t, emu, http.MethodPut, pips+"kept", ip("Standard", "Static")))
		time.Sleep(time.Minute)
		accepted(t, send(t, emu, http.MethodPut, otherLB, withFrontends(public("a", "kept"))))
		time.Sleep(time.Minute)
		if got := get(t, emu, pips+"kept", "ipAddress"); got != kept {
			t.Errorf("it had %s, and has %s", kept, got)
		}
	})
}
