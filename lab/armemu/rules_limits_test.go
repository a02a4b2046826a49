// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

const (
	machines     = "/subscriptions/" + subscription + "/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/"
	regionalID   = group + "/loadBalancers/regional"
	globalID     = group + "/loadBalancers/global"
	globalPoolID = globalID + "/backendAddressPools/p"
)

// putMachine adds a machine with a network interface of its name in the pools; set is its availability set, or "".
func putMachine(t *testing.T, emu *armemu.Emulator, name, set string, pools ...string) {
	t.Helper()
	more := ""
	if set != "" {
		more = `,"availabilitySet":{"id":"` + computeID + `/availabilitySets/` + set + `"}`
	}
	putResource(t, emu, nics+name, nicInPools("", pools...))
	putResource(t, emu, machines+name, `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nics+name+`"}]}`+more+`}}`)
}

func availabilitySetViolations() []ruleViolation {
	// 149 machines in no set and one of a set fill the pool; "alone" and "blue2" are in none.
	full := func(t *testing.T, emu *armemu.Emulator) {
		withLoadBalancers(t, emu)
		for i := range 149 {
			putMachine(t, emu, fmt.Sprintf("m%d", i), "", poolOf("internal"))
		}
		putMachine(t, emu, "blue1", "blue", poolOf("internal"))
		putMachine(t, emu, "blue2", "blue")
		putMachine(t, emu, "alone", "")
	}
	behind := func(t *testing.T, emu *armemu.Emulator) {
		withLoadBalancers(t, emu)
		putResource(t, emu, group+"/loadBalancers/internal2", lb("Standard", internalFrontends+`,"backendAddressPools":[{"name":"p"}]`))
		putMachine(t, emu, "blue1", "blue", poolOf("internal"), poolOf("public1"))
		putMachine(t, emu, "blue2", "blue")
		putMachine(t, emu, "green1", "green")
		putMachine(t, emu, "alone", "")
	}
	second := nicInPools("", poolOf("internal2"))
	return []ruleViolation{
		{rule: "availability-set-limit", prepare: full, id: nics + "alone", bad: nicInPools("", poolOf("internal")), goodID: nics + "blue2", good: nicInPools("", poolOf("internal")), message: "machines of 151 availability sets; the limit is 150"},
		{rule: "availability-set-limit", prepare: full, id: nics + "alone", bad: nicInPools("", poolOf("internal")), goodID: nics + "m7", good: nicInPools("", poolOf("internal")), message: "loadBalancers/internal"},
		{rule: "availability-set-one-internal", prepare: behind, id: nics + "blue2", bad: second, good: nicInPools("", poolOf("internal"), poolOf("public2")), message: "loadBalancers/internal exists"},
		{rule: "availability-set-one-internal", prepare: behind, id: nics + "blue2", bad: second, goodID: nics + "green1", good: second, message: "/availabilitysets/blue"},
		{rule: "availability-set-one-internal", prepare: behind, id: nics + "blue2", bad: second, goodID: nics + "blue1", good: second, message: "AnotherInternalLoadBalancerExists"},
		{rule: "availability-set-one-internal", prepare: behind, id: nics + "blue2", bad: second, goodID: nics + "alone", good: second, message: "blue2"},
	}
}

// portsBody has the pools p and q and a rule for each with a backend port.
func portsBody(name, frontend string, p, q int, more string) string {
	id := group + "/loadBalancers/" + name
	rule := func(pool string, front, back int) string {
		return fmt.Sprintf(`{"name":"to-%s","properties":{"protocol":"Tcp","frontendPort":%d,"backendPort":%d,"frontendIPConfiguration":{"id":"%s/frontendIPConfigurations/f"},`+
			`"backendAddressPool":{"id":"%s/backendAddressPools/%s"}%s}}`, pool, front, back, id, id, pool, more)
	}
	return lb("Standard", `"frontendIPConfigurations":[`+frontend+`],"backendAddressPools":[{"name":"p"},{"name":"q"}],"loadBalancingRules":[`+rule("p", 1, p)+","+rule("q", 2, q)+`]`)
}

func backendPortViolations() []ruleViolation {
	front, floating := publicFrontend("f", "a"), `,"enableFloatingIP":true`
	balancer := group + "/loadBalancers/ports"
	pools := func(name string) []string {
		return []string{poolOf(name), strings.TrimSuffix(poolOf(name), "p") + "q"}
	}
	both, inside := pools("ports"), pools("inside")
	prepare := func(t *testing.T, emu *armemu.Emulator) {
		withAddresses(t, emu)
		putResource(t, emu, balancer, portsBody("ports", front, 80, 80, ""))
		putResource(t, emu, group+"/loadBalancers/inside", portsBody("inside", privateFrontend("f", nodesID, ""), 80, 81, ""))
		putResource(t, emu, setID, setBody("Manual", 0))
	}
	joined := func(t *testing.T, emu *armemu.Emulator) {
		withAddresses(t, emu)
		putResource(t, emu, balancer, portsBody("ports", front, 80, 81, ""))
		putResource(t, emu, nics+"member", nicInPools("", both...))
	}
	instance := func(t *testing.T, emu *armemu.Emulator) {
		prepare(t, emu)
		putResource(t, emu, instanceID("0"), instanceInPools())
	}
	return []ruleViolation{
		{rule: "nic-backend-port-once", prepare: prepare, id: nics + "new", bad: nicInPools("", both...), good: nicInPools("", both[0]), message: "loadBalancingRules/to-p and "},
		{rule: "nic-backend-port-once", prepare: prepare, id: nics + "new", bad: nicInPools("", both...), good: nicInPools("", both[1], inside[0], inside[1]), message: "backend port (80) and protocol (tcp)"},
		{rule: "scale-set-backend-port-once", prepare: prepare, id: setID + computeAPI, bad: setBody("Manual", 0, both...), good: setBody("Manual", 0, both[1]), message: setID + "/networkInterfaces/n"},
		{rule: "scale-set-backend-port-once", prepare: instance, id: instanceID("0") + computeAPI, bad: instanceInPools(both...), good: instanceInPools(both[0], inside[0]), message: "loadBalancingRules/to-p and "},
		{rule: "balancer-backend-port-once", prepare: joined, id: balancer, bad: portsBody("ports", front, 81, 81, ""), good: portsBody("ports", front, 81, 80, ""), message: "networkInterfaces/member"},
		{rule: "balancer-backend-port-once", prepare: joined, id: balancer, bad: portsBody("ports", front, 81, 81, ""), good: portsBody("ports", front, 81, 81, floating), message: "loadBalancingRules/to-q"},
	}
}

func healthViolations() []ruleViolation {
	balancer := group + "/loadBalancers/probed"
	body := func(rules ...string) string {
		list := make([]string, len(rules))
		for i, r := range rules {
			name, probe, _ := strings.Cut(r, " ")
			list[i] = fmt.Sprintf(`{"name":"%s","properties":{"protocol":"Tcp","frontendPort":%d,"backendPort":%d,"frontendIPConfiguration":{"id":"%s/frontendIPConfigurations/in"},"probe":{"id":"%s/probes/%s"}}}`,
				name, i+1, i+1, balancer, balancer, probe)
		}
		return lb("Standard", internalFrontends+`,"backendAddressPools":[{"name":"p"}],"probes":[{"name":"used"},{"name":"idle"}],"loadBalancingRules":[`+strings.Join(list, ",")+`]`)
	}
	set := func(probe string) string {
		return strings.Replace(setBody("Manual", 0, poolOf("probed")), `"networkProfile":{`, `"networkProfile":{"healthProbe":{"id":"`+balancer+`/probes/`+probe+`"},`, 1)
	}
	probed := func(t *testing.T, emu *armemu.Emulator) { putResource(t, emu, balancer, body("one used", "two used")) }
	watched := func(t *testing.T, emu *armemu.Emulator) {
		probed(t, emu)
		putResource(t, emu, setID, set("used"))
	}
	return []ruleViolation{
		{rule: "scale-set-health-probe", prepare: probed, id: setID + computeAPI, bad: set("idle"), good: set("USED"), message: "probes/idle as a HealthProbe"},
		{rule: "scale-set-health-probe", prepare: probed, id: setID + computeAPI, bad: set("none"), good: setBody("Manual", 0, poolOf("probed")), message: "probes/none"},
		{rule: "health-probe-keeps-rule", prepare: watched, id: balancer, bad: body("one used"), good: body("two used", "one used", "three idle"), message: "loadBalancingRules/two cannot be removed"},
		{rule: "health-probe-keeps-rule", prepare: watched, id: balancer, bad: body("one used", "two idle"), good: body("one used", "two used"), message: setID},
	}
}

func globalBalancer(frontend, pool, more string) string {
	return strings.Replace(lb("Standard", `"frontendIPConfigurations":[`+frontend+`],"backendAddressPools":[{"name":"p","properties":{"loadBalancerBackendAddresses":[`+pool+`]}}]`+more),
		`"name":"Standard"`, `"name":"Standard","tier":"Global"`, 1)
}

func frontendMember(id string) string {
	return `{"name":"m","properties":{"loadBalancerFrontendIPConfiguration":{"id":"` + id + `"}}}`
}

// withGlobal adds the load balancer regional with the public frontends f1 and f2, and global with the first in its pool.
func withGlobal(t *testing.T, emu *armemu.Emulator) {
	withAddresses(t, emu)
	for _, name := range []string{"g1", "g2"} {
		putResource(t, emu, pips+name, strings.Replace(lb("Standard", static), `"name":"Standard"`, `"name":"Standard","tier":"Global"`, 1))
	}
	putResource(t, emu, regionalID, withFrontends(publicFrontend("f1", "a")+","+publicFrontend("f2", "b")))
	putResource(t, emu, globalID, globalBalancer(publicFrontend("f", "g1"), frontendMember(regionalID+"/frontendIPConfigurations/f1"), ""))
	putResource(t, emu, group+"/loadBalancers/internal", lb("Standard", internalFrontends+`,"backendAddressPools":[{"name":"p"}]`))
}

func globalViolations() []ruleViolation {
	front, member := publicFrontend("f", "g1"), frontendMember(regionalID+"/frontendIPConfigurations/f1")
	body, regional := globalBalancer(front, member, ""), withFrontends(publicFrontend("f1", "a"))
	outbound := `,"outboundRules":[{"name":"out","properties":{"protocol":"All","frontendIPConfigurations":[{"id":"` + globalID + `/frontendIPConfigurations/f"}],"backendAddressPool":{"id":"` + globalPoolID + `"}}}]`
	cases := []ruleViolation{
		{rule: "tier-fixed", id: globalID, bad: strings.Replace(body, `,"tier":"Global"`, "", 1), good: body, message: "loadBalancers/global"},
		{rule: "tier-fixed", id: pips + "g2", bad: lb("Standard", static), good: strings.Replace(lb("Standard", static), `"name":"Standard"`, `"name":"Standard","tier":"Global"`, 1), message: "publicIPAddresses/g2"},
		{rule: "global-public-ip", id: group + "/loadBalancers/new", bad: withFrontends(publicFrontend("f", "g2")), good: globalBalancer(publicFrontend("f", "g2"), member, ""), message: "publicIPAddresses/g2"},
		{rule: "global-public-ip", id: globalID, bad: globalBalancer(front+","+privateFrontend("in", nodesID, ""), member, ""), good: globalBalancer(front+","+publicFrontend("h", "g2"), member, ""), message: "internal frontend"},
		{rule: "global-no-outbound", id: globalID, bad: globalBalancer(front, member, outbound), good: body, message: "Outbound rule out"},
		{rule: "global-members", id: globalPoolID, bad: poolBody("10.0.0.1"), good: poolWith("", frontendMember(regionalID+"/frontendIPConfigurations/f2")), message: "Regional tier"},
		{rule: "global-members", id: globalPoolID, bad: poolWith("", frontendMember(group+"/loadBalancers/internal/frontendIPConfigurations/in")), good: poolWith(""), message: "Backend address m"},
		{rule: "global-members", id: globalPoolID, bad: poolWith("", frontendMember(globalID+"/frontendIPConfigurations/f")), good: poolWith(""), message: "Backend address m"},
		{rule: "global-no-interfaces", id: nics + "new", bad: nicInPools("", globalPoolID), good: nicInPools("", poolOf("internal")), message: "loadBalancers/global"},
		{rule: "frontends-of-global-remain", id: regionalID, bad: withFrontends(publicFrontend("f2", "b")), good: regional, message: "frontendIPConfigurations/f1 referenced by global load balancer's pool " + globalPoolID},
		{rule: "not-behind-global", method: http.MethodDelete, id: regionalID, goodID: globalID, message: "delete load balancer " + regionalID},
	}
	for i := range cases {
		cases[i].prepare = withGlobal
	}
	return cases
}

// A load balancer of SKU Service takes Standard public IPs. An api-version that does not know the SKU neither makes nor
// changes one.
func TestServiceSKU(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	withAddresses(t, emu)
	body, newer := strings.Replace(withFrontends(publicFrontend("f", "a")), "Standard", "Service", 1), otherLB+"?api-version=2025-09-01"
	expectRejected(t, sendRequest(t, emu, http.MethodPut, otherLB, body), 400, "SkuCannotBeSpecifiedForApiVersion")
	expectRejected(t, sendRequest(t, emu, http.MethodPut, newer, strings.Replace(body, pips+"a", pips+"old", 1)), 400, "PublicIPAndLBSkuDoNotMatch")
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, newer, body))
	for _, id := range []string{otherLB, otherLB + "/backendAddressPools/p"} {
		expectRejected(t, sendRequest(t, emu, http.MethodPut, id, body), 400, "UpdateOnResourceNotAllowedWithApiVersion")
	}
	expectRejected(t, sendRequest(t, emu, http.MethodPut, newer, withFrontends(publicFrontend("f", "a"))), 400, "SkuCannotBeChangedOnUpdate")
	expectAccepted(t, sendRequest(t, emu, http.MethodDelete, otherLB, ""))
}
