// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// withLoadBalancers adds public1, public2 and internal (Standard), basic (Basic) and bare (Standard)
// without frontends, far (in another location) and east, each with the pool p.
func withLoadBalancers(t *testing.T, emu *armemu.Emulator) {
	withAddresses(t, emu)
	withBasic(t, emu)
	pool := `"backendAddressPools":[{"name":"p"}]`
	for name, frontend := range map[string]string{"public1": publicFrontend("f", "a"), "public2": publicFrontend("f", "b"), "internal": privateFrontend("f", nodesID, ""), "bare": ""} {
		putResource(t, emu, group+"/loadBalancers/"+name, lb("Standard", `"frontendIPConfigurations":[`+frontend+`],`+pool))
	}
	putResource(t, emu, group+"/loadBalancers/far", strings.Replace(lb("Standard", pool), "eastus", "West Europe", 1))
	putResource(t, emu, group+"/loadBalancers/east", strings.Replace(lb("Standard", pool), "eastus", "East US", 1))
}

// withRules adds rules and fewer with 300 and 299 rules for their pools p (one inbound NAT each),
// the internal within with 200, and the interface member in the pools of within and fewer2 (99).
func withRules(t *testing.T, emu *armemu.Emulator) {
	withAddresses(t, emu)
	for name, n := range map[string]int{"rules": 300, "fewer": 299, "fewer2": 99, "within": 200, "within2": 201} {
		frontend := `{"name":"fe"}`
		if name == "fewer2" {
			frontend = publicFrontend("fe", "a")
		}
		if strings.HasPrefix(name, "within") {
			frontend = privateFrontend("fe", nodesID, "")
		}
		putResource(t, emu, group+"/loadBalancers/"+name, rulesBody(name, n, frontend))
	}
	putResource(t, emu, nics+"member", nicInPools("", poolOf("within"), poolOf("fewer2")))
}

// One of the rules is inbound NAT.
func rulesBody(name string, n int, frontend string) string {
	ref := `{"id":"` + poolOf(name) + `"}`
	rules := repeatFormat(n-1, `{"name":"r%","properties":{"frontendPort":1%,"backendPort":1%,"protocol":"Tcp","backendAddressPool":`+ref+`,"backendAddressPools":[`+ref+`]}}`)
	return lb("Standard", `"frontendIPConfigurations":[`+frontend+`],"backendAddressPools":[{"name":"p"}],"loadBalancingRules":[`+rules+`],"inboundNatRules":[{"name":"n","properties":{"backendAddressPool":`+ref+`}}]`)
}

func poolOf(balancer string) string {
	return group + "/loadBalancers/" + balancer + "/backendAddressPools/p"
}

func nicInPools(more string, pools ...string) string {
	refs := make([]string, len(pools))
	for i, p := range pools {
		refs[i] = `{"id":"` + p + `"}`
	}
	return fmt.Sprintf(`{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{%s"subnet":{"id":%q},"loadBalancerBackendAddressPools":[%s]}}]}}`,
		more, nodesID, strings.Join(refs, ","))
}

func membershipViolations() []ruleViolation {
	set := setID + computeAPI
	withPIP := func(name string) string { return `"publicIPAddress":{"id":"` + pips + name + `"},` }
	cases := []ruleViolation{
		{rule: "nic-one-load-balancer-a-kind", id: nics + "new", bad: nicInPools("", poolOf("public1"), poolOf("public2")), good: nicInPools("", poolOf("public1"), poolOf("internal")), message: "loadBalancers/public1"},
		{rule: "nic-one-load-balancer-a-kind", id: nics + "new", bad: nicInPools("", poolOf("public2"), poolOf("public1")), good: nicInPools("", poolOf("public1"), poolOf("bare")), message: "more than one load balancer of the same type"},
		{rule: "scale-set-one-load-balancer-a-kind", id: set, bad: setBody("Manual", 0, poolOf("public1"), poolOf("public2")), good: setBody("Manual", 0, poolOf("public1"), poolOf("internal")), message: "networkInterfaces/n"},
		{rule: "nic-sku", id: nics + "new", bad: nicInPools("", poolOf("basic"), poolOf("bare")), good: nicInPools("", poolOf("bare"), poolOf("internal")), message: "loadBalancers/basic"},
		{rule: "nic-sku", id: nics + "new", bad: nicInPools(withPIP("old"), poolOf("bare")), good: nicInPools(withPIP("old"), poolOf("basic")), message: "publicIPAddresses/old"},
		{rule: "scale-set-sku", id: set, bad: setBody("Manual", 0, poolOf("basic"), poolOf("bare")), good: setBody("Manual", 0, poolOf("basic")), message: "loadBalancers/basic"},
		{rule: "nic-location", id: nics + "new", bad: nicInPools("", poolOf("far")), good: nicInPools("", poolOf("east")), message: "loadBalancers/far"},
		{rule: "nic-rule-limit", id: nics + "new", bad: nicInPools("", poolOf("rules")), good: nicInPools("", poolOf("fewer")), message: "300"},
		{rule: "nic-rule-limit", id: nics + "new", bad: nicInPools("", poolOf("fewer2"), poolOf("within2")), good: nicInPools("", poolOf("fewer2"), poolOf("within")), message: "300"},
		{rule: "nic-rule-limit", id: nics + "new", bad: nicInPools(`"loadBalancerInboundNatRules":[{"id":"/n"}],`, poolOf("fewer")), good: nicInPools("", poolOf("fewer")), message: "300"},
		{rule: "balancer-nic-rule-limit", id: group + "/loadBalancers/fewer2", bad: rulesBody("fewer2", 100, publicFrontend("fe", "a")), good: rulesBody("fewer2", 99, publicFrontend("fe", "a")), message: "networkInterfaces/member"},
		{rule: "ip-configuration-references-exist", id: set, bad: setBody("Manual", 0, poolOf("none")), good: setBody("Manual", 0, poolOf("bare")), message: "loadBalancers/none"},
		{rule: "nic-pool-not-mixed", id: set, bad: setBody("Manual", 0, userPool("ips")), good: setBody("Manual", 0, userPool("q")), message: "user/backendAddressPools/ips"},
	}
	for i := range cases {
		cases[i].prepare = withLoadBalancers
		if strings.HasSuffix(cases[i].rule, "nic-rule-limit") {
			cases[i].prepare = withRules
		}
	}
	user := group + "/loadBalancers/user"
	inModel := func(t *testing.T, emu *armemu.Emulator) {
		withAddresses(t, emu)
		putResource(t, emu, setID, setBody("Manual", 0, userPool("p")))
	}
	inMachine := func(t *testing.T, emu *armemu.Emulator) {
		withAddresses(t, emu)
		putResource(t, emu, setID, setBody("Manual", 0))
		putResource(t, emu, instanceID("0"), instanceInPools(userPool("p")))
	}
	for _, prepare := range []func(*testing.T, *armemu.Emulator){inModel, inMachine} {
		cases = append(cases,
			ruleViolation{rule: "load-balancer-without-scale-set", method: http.MethodDelete, id: user, goodID: lbID, prepare: prepare, message: "child resources p are in use by virtual machine scale set " + setID},
			ruleViolation{rule: "pool-not-in-use", method: http.MethodDelete, id: userPool("p"), goodID: userPool("q"), prepare: prepare, message: setID},
		)
	}
	return cases
}

func instanceInPools(pools ...string) string {
	refs := make([]string, len(pools))
	for i, p := range pools {
		refs[i] = `{"id":"` + p + `"}`
	}
	return fmt.Sprintf(`{"location":"eastus","properties":{"networkProfileConfiguration":{"networkInterfaceConfigurations":[{"name":"n","properties":{"primary":true,
		"ipConfigurations":[{"name":"ip","properties":{"subnet":{"id":%q},"loadBalancerBackendAddressPools":[%s]}}]}}]}}}`, nodesID, strings.Join(refs, ","))
}
