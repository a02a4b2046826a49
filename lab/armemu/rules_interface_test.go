// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// withBalancers adds the load balancers public1 and public2 (Standard), internal (Standard),
// basic (Basic, without frontends), bare (Standard, without frontends), far (in another
// location) and east, each with the pool p.
func withBalancers(t *testing.T, emu *armemu.Emulator) {
	withAddresses(t, emu)
	withBasic(t, emu)
	pool := `"backendAddressPools":[{"name":"p"}]`
	for name, frontend := range map[string]string{"public1": public("f", "a"), "public2": public("f", "b"), "internal": private("f", nodesID, ""), "bare": ""} {
		put(t, emu, group+"/loadBalancers/"+name, lb("Standard", `"frontendIPConfigurations":[`+frontend+`],`+pool))
	}
	put(t, emu, group+"/loadBalancers/far", strings.Replace(lb("Standard", pool), "eastus", "West Europe", 1))
	put(t, emu, group+"/loadBalancers/east", strings.Replace(lb("Standard", pool), "eastus", "East US", 1))
}

// withRules adds the load balancers rules and fewer, whose pools p have 300 and 299 rules (one
// inbound NAT each), the internal one within with 200, and the interface member in that pool and in
// the pool of fewer2 with 99.
func withRules(t *testing.T, emu *armemu.Emulator) {
	withAddresses(t, emu)
	for name, n := range map[string]int{"rules": 300, "fewer": 299, "fewer2": 99, "within": 200, "within2": 201} {
		frontend := `{"name":"fe"}`
		if name == "fewer2" {
			frontend = public("fe", "a")
		}
		if strings.HasPrefix(name, "within") {
			frontend = private("fe", nodesID, "")
		}
		put(t, emu, group+"/loadBalancers/"+name, rulesBody(name, n, frontend))
	}
	put(t, emu, nics+"member", nicIn("", poolOf("within"), poolOf("fewer2")))
}

// rulesBody is a load balancer with n rules for its pool p, one of them inbound NAT.
func rulesBody(name string, n int, frontend string) string {
	ref := `{"id":"` + poolOf(name) + `"}`
	rules := repeat(n-1, `{"name":"r%","properties":{"frontendPort":1%,"backendPort":1%,"protocol":"Tcp","backendAddressPool":`+ref+`,"backendAddressPools":[`+ref+`]}}`)
	return lb("Standard", `"frontendIPConfigurations":[`+frontend+`],"backendAddressPools":[{"name":"p"}],"loadBalancingRules":[`+rules+`],"inboundNatRules":[{"name":"n","properties":{"backendAddressPool":`+ref+`}}]`)
}

func poolOf(balancer string) string {
	return group + "/loadBalancers/" + balancer + "/backendAddressPools/p"
}

// nicIn has one IP configuration in these pools, and more properties.
func nicIn(more string, pools ...string) string {
	refs := make([]string, len(pools))
	for i, p := range pools {
		refs[i] = `{"id":"` + p + `"}`
	}
	return fmt.Sprintf(`{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{%s"subnet":{"id":%q},"loadBalancerBackendAddressPools":[%s]}}]}}`,
		more, nodesID, strings.Join(refs, ","))
}

func membershipBreaches() []breach {
	set := setID + computeAPI
	withPIP := func(name string) string { return `"publicIPAddress":{"id":"` + pips + name + `"},` }
	cases := []breach{
		{rule: "nic-one-load-balancer-a-kind", id: nics + "new", bad: nicIn("", poolOf("public1"), poolOf("public2")), good: nicIn("", poolOf("public1"), poolOf("internal")), message: "loadBalancers/public1"},
		{rule: "nic-one-load-balancer-a-kind", id: nics + "new", bad: nicIn("", poolOf("public2"), poolOf("public1")), good: nicIn("", poolOf("public1"), poolOf("bare")), message: "more than one load balancer of the same type"},
		{rule: "scale-set-one-load-balancer-a-kind", id: set, bad: setBody("Manual", 0, poolOf("public1"), poolOf("public2")), good: setBody("Manual", 0, poolOf("public1"), poolOf("internal")), message: "networkInterfaces/n"},
		{rule: "nic-sku", id: nics + "new", bad: nicIn("", poolOf("basic"), poolOf("bare")), good: nicIn("", poolOf("bare"), poolOf("internal")), message: "loadBalancers/basic"},
		{rule: "nic-sku", id: nics + "new", bad: nicIn(withPIP("old"), poolOf("bare")), good: nicIn(withPIP("old"), poolOf("basic")), message: "publicIPAddresses/old"},
		{rule: "scale-set-sku", id: set, bad: setBody("Manual", 0, poolOf("basic"), poolOf("bare")), good: setBody("Manual", 0, poolOf("basic")), message: "loadBalancers/basic"},
		{rule: "nic-location", id: nics + "new", bad: nicIn("", poolOf("far")), good: nicIn("", poolOf("east")), message: "loadBalancers/far"},
		{rule: "nic-rule-limit", id: nics + "new", bad: nicIn("", poolOf("rules")), good: nicIn("", poolOf("fewer")), message: "300"},
		{rule: "nic-rule-limit", id: nics + "new", bad: nicIn("", poolOf("fewer2"), poolOf("within2")), good: nicIn("", poolOf("fewer2"), poolOf("within")), message: "300"},
		{rule: "nic-rule-limit", id: nics + "new", bad: nicIn(`"loadBalancerInboundNatRules":[{"id":"/n"}],`, poolOf("fewer")), good: nicIn("", poolOf("fewer")), message: "300"},
		{rule: "balancer-nic-rule-limit", id: group + "/loadBalancers/fewer2", bad: rulesBody("fewer2", 100, public("fe", "a")), good: rulesBody("fewer2", 99, public("fe", "a")), message: "networkInterfaces/member"},
		{rule: "ip-configuration-references-exist", id: set, bad: setBody("Manual", 0, poolOf("none")), good: setBody("Manual", 0, poolOf("bare")), message: "loadBalancers/none"},
		{rule: "nic-pool-not-mixed", id: set, bad: setBody("Manual", 0, userPool("ips")), good: setBody("Manual", 0, userPool("q")), message: "user/backendAddressPools/ips"},
	}
	for i := range cases {
		cases[i].prepare = withBalancers
		if strings.HasSuffix(cases[i].rule, "nic-rule-limit") {
			cases[i].prepare = withRules
		}
	}
	user := group + "/loadBalancers/user"
	inModel := func(t *testing.T, emu *armemu.Emulator) {
		withAddresses(t, emu)
		put(t, emu, setID, setBody("Manual", 0, userPool("p")))
	}
	inMachine := func(t *testing.T, emu *armemu.Emulator) {
		withAddresses(t, emu)
		put(t, emu, setID, setBody("Manual", 0))
		put(t, emu, instanceID("0"), machineIn(userPool("p")))
	}
	for _, prepare := range []func(*testing.T, *armemu.Emulator){inModel, inMachine} {
		cases = append(cases,
			breach{rule: "load-balancer-without-scale-set", method: http.MethodDelete, id: user, goodID: lbID, prepare: prepare, message: "child resources p are in use by virtual machine scale set " + setID},
			breach{rule: "pool-not-in-use", method: http.MethodDelete, id: userPool("p"), goodID: userPool("q"), prepare: prepare, message: setID},
		)
	}
	return cases
}

// machineIn is a scale set instance with one interface in these pools.
func machineIn(pools ...string) string {
	refs := make([]string, len(pools))
	for i, p := range pools {
		refs[i] = `{"id":"` + p + `"}`
	}
	return fmt.Sprintf(`{"location":"eastus","properties":{"networkProfileConfiguration":{"networkInterfaceConfigurations":[{"name":"n","properties":{"primary":true,
		"ipConfigurations":[{"name":"ip","properties":{"subnet":{"id":%q},"loadBalancerBackendAddressPools":[%s]}}]}}]}}}`, nodesID, strings.Join(refs, ","))
}
