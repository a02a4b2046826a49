// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/referencepage"
	"weir.dev/weir/test/worlds"
)

// ruleViolation is a request that violates one rule, and a similar valid one.
type ruleViolation struct {
	rule            string
	prepare         func(t *testing.T, emu *armemu.Emulator)
	method, id      string
	bad, good       string
	goodID, message string
	zones           []string
}

func addressIn(network, name, ip string) string {
	return `{"name":"` + name + `","properties":{"ipAddress":"` + ip + `","virtualNetwork":{"id":"` + network + `"}}}`
}

func poolWith(pool string, entries ...string) string {
	return `{"properties":{` + pool + `"loadBalancerBackendAddresses":[` + strings.Join(entries, ",") + `]}}`
}

func repeatFormat(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.ReplaceAll(format, "%", fmt.Sprint(i))
	}
	return strings.Join(list, ",")
}

const (
	inVNet  = `"virtualNetwork":{"id":"` + vnetID + `"},`
	nicAddr = `{"name":"nic","properties":{"ipAddress":"10.0.0.9","networkInterfaceIPConfiguration":{"id":"/nic"}}}`
	basicID = group + "/loadBalancers/basic"
)

func withBasic(t *testing.T, emu *armemu.Emulator) {
	putResource(t, emu, basicID, `{"location":"eastus","sku":{"name":"Basic"},"properties":{"backendAddressPools":[{"name":"p"}]}}`)
}

func withSecondNetwork(t *testing.T, emu *armemu.Emulator) {
	putResource(t, emu, vnetID+"2", `{"location":"eastus"}`)
}

var manyAddresses = func(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"n%d","properties":{"ipAddress":"10.0.%d.%d"}}`, i, i/250, i%250)
	}
	return poolWith(inVNet, list...)
}

func lb(sku, props string) string {
	return `{"location":"eastus","sku":{"name":"` + sku + `"},"properties":{` + props + `}}`
}

func poolViolations() []ruleViolation {
	return []ruleViolation{
		{rule: "address-names-unique", bad: poolWith(inVNet, addressIn(vnetID, "a", "10.0.0.1"), addressIn(vnetID, "A", "10.0.0.2")), good: poolWith(inVNet, addressIn(vnetID, "a", "10.0.0.1"), addressIn(vnetID, "b", "10.0.0.2")), message: "same name (A)"},
		{rule: "pool-size", bad: manyAddresses(5001), good: manyAddresses(5000), message: "5001"},
		{rule: "address-has-target", bad: poolWith(inVNet, addressIn(vnetID, "a", "10.0.0.256")), good: poolWith(inVNet, addressIn(vnetID, "a", "10.0.0.255")), message: `"10.0.0.256"`},
		{rule: "address-has-target", bad: poolWith(inVNet, `{"name":"a"}`), good: poolWith("", `{"name":"a","properties":{"loadBalancerFrontendIPConfiguration":{"id":"/fe"}}}`), message: `""`},
		{rule: "address-ips-unique", bad: poolWith(inVNet, addressIn(vnetID, "a", "fd00::1"), addressIn(vnetID, "b", "fd00:0::1")), good: poolWith(inVNet, addressIn(vnetID, "a", "fd00::1"), addressIn(vnetID, "b", "fd00::2")), message: "fd00::1"},
		{rule: "admin-state", bad: poolWith(inVNet, `{"name":"a","properties":{"ipAddress":"10.0.0.1","adminState":"Off"}}`), good: poolWith(inVNet, `{"name":"a","properties":{"ipAddress":"10.0.0.1","adminState":"Drain"}}`), message: "Off"},
		{rule: "admin-state-after-creation", id: lbID, bad: lbBody(`{"name":"web"},` + newPool(strings.Replace(nicAddr, `"ipAddress"`, `"adminState":"Down","ipAddress"`, 1))), good: lbBody(`{"name":"web"},` + newPool(nicAddr)), message: "Down"},
		{rule: "ip-and-nic-not-mixed", bad: poolWith(inVNet, addressIn(vnetID, "a", "10.0.0.1"), nicAddr), good: poolBody("10.0.0.1"), message: "both"},
		{
			rule: "ip-and-nic-not-mixed", bad: poolBody("10.0.0.1"), good: poolWith("", poolEntry("rg_nicip", nicRef("nic"), "")), message: "both",
			prepare: func(t *testing.T, emu *armemu.Emulator) {
				putResource(t, emu, poolID, `{"properties":{"backendIPConfigurations":[{"id":"`+nics+`nic/ipConfigurations/ip"}]}}`)
			},
		},
		{rule: "ip-pool-needs-standard", prepare: withBasic, id: basicID + "/backendAddressPools/p", bad: poolBody("10.0.0.1"), goodID: poolID, good: poolBody("10.0.0.1"), message: "Basic"},
		{rule: "address-needs-network", bad: poolWith("", `{"name":"a","properties":{"ipAddress":"10.0.0.1"}}`), good: poolWith("", `{"name":"a","properties":{"ipAddress":"10.0.0.1","subnet":{"id":"`+vnetID+`/subnets/nodes"}}}`), message: "Address a"},
		{rule: "one-network", prepare: withSecondNetwork, bad: poolWith("", addressIn(vnetID, "a", "10.0.0.1"), addressIn(vnetID+"2", "b", "10.0.0.2")), good: poolWith("", addressIn(vnetID, "a", "10.0.0.1"), addressIn(vnetID, "b", "10.0.0.2")), message: "vnet2"},
		{rule: "one-network", prepare: withSecondNetwork, bad: poolWith(inVNet, addressIn(vnetID+"2", "b", "10.0.0.2")), good: poolWith("", addressIn(vnetID+"2", "b", "10.0.0.2")), message: "vnet2"},
		{rule: "network-exists", bad: strings.ReplaceAll(poolBody("10.0.0.1"), vnetID, vnetID+"9"), good: poolBody("10.0.0.1"), message: "vnet9"},
	}
}

func newPool(entries ...string) string {
	return strings.Replace(poolWith("", entries...), "{", `{"name":"new",`, 1)
}

func nicRef(name string) string {
	return `"networkInterfaceIPConfiguration":{"id":"` + nics + name + `/ipConfigurations/ip"}`
}

func rootViolations() []ruleViolation {
	limit := func(n int) func(t *testing.T, emu *armemu.Emulator) {
		return func(t *testing.T, emu *armemu.Emulator) {
			for i := range n {
				putResource(t, emu, fmt.Sprintf("%s/loadBalancers/filler%d", group, i), `{"location":"westus"}`)
			}
		}
	}
	other := group + "/loadBalancers/other"
	return []ruleViolation{
		{rule: "resource-name", id: group + "/loadBalancers/-bad", bad: lb("Standard", ""), goodID: group + "/loadBalancers/a.b_", good: lb("Standard", ""), message: `"-bad"`},
		{rule: "resource-name", id: lbID, bad: lbBody(`{"name":"web"},{"name":"a%20b"}`), good: lbBody(`{"name":"web"},{"name":"ab"}`), message: "a%20b"},
		{rule: "location", id: other, bad: `{"sku":{"name":"Standard"}}`, good: lb("Standard", ""), message: "location"},
		{rule: "child-names", id: other, bad: lb("Standard", internalFrontends+`,"probes":[{}]`), good: lb("Standard", internalFrontends+`,"probes":[{"name":"a"}]`), message: "probes[0]"},
		{rule: "child-names-unique", id: lbID, bad: lbBody(`{"name":"web"},{"name":"WEB"}`), good: lbBody(`{"name":"web"}`), message: "(WEB)"},
		{rule: "sku-fixed", prepare: withBasic, id: basicID, bad: lb("Standard", ""), good: lb("Basic", ""), message: "from Basic to Standard"},
		{rule: "mode-fixed", id: basicID, prepare: withBasic, bad: lb("Basic", `"mode":"Advanced"`), good: lb("Basic", ""), message: `to "Advanced"`},
		{rule: "children-need-frontend", id: other, bad: lb("Standard", `"backendAddressPools":[{"name":"p"}]`), good: lb("Standard", ""), message: "does not have Frontend IP Configuration, but it has other child resources"},
		{rule: "rule-limit", id: other, bad: lb("Standard", internalFrontends+`,"loadBalancingRules":[`+repeatFormat(1501, `{"name":"r%"}`)+`]`), good: lb("Standard", internalFrontends+`,"loadBalancingRules":[`+repeatFormat(1500, `{"name":"r%"}`)+`]`), message: "1501"},
		{rule: "rule-limit", id: other, bad: lb("Basic", internalFrontends+`,"loadBalancingRules":[`+repeatFormat(251, `{"name":"r%"}`)+`]`), good: lb("Basic", internalFrontends+`,"loadBalancingRules":[`+repeatFormat(250, `{"name":"r%"}`)+`]`), message: "251"},
		{rule: "frontend-limit", id: other, bad: withFrontends(repeatFormat(601, privateFrontend("f%", nodesID, ""))), good: withFrontends(repeatFormat(600, privateFrontend("f%", nodesID, ""))), message: "601"},
		{rule: "load-balancer-limit", prepare: limit(1000), id: other, bad: strings.Replace(lb("Standard", ""), "eastus", "westus", 1), good: lb("Standard", ""), message: "1000 load balancers in westus"},
		{rule: "references-exist", id: lbID, bad: lbBody(`{"name":"spare"}`), good: lbBody(`{"name":"web"}`), message: "loadBalancingRules/r"},
	}
}

func deleteViolations() []ruleViolation {
	used := func(t *testing.T, emu *armemu.Emulator) {
		putResource(t, emu, vnetID+"/subnets/idle", `{}`)
		putResource(t, emu, poolID, poolWith("", `{"name":"a","properties":{"ipAddress":"10.0.0.1","subnet":{"id":"`+vnetID+`/subnets/nodes"}}}`))
		withSecondNetwork(t, emu)
	}
	whole := func(t *testing.T, emu *armemu.Emulator) {
		putResource(t, emu, poolID, poolBody("10.0.0.1"))
		withSecondNetwork(t, emu)
	}
	return []ruleViolation{
		{rule: "pool-not-in-use", method: http.MethodDelete, id: poolID, goodID: lbID + "/backendAddressPools/spare", message: "loadBalancingRules/r"},
		{rule: "subnet-not-in-use", prepare: used, method: http.MethodDelete, id: vnetID + "/subnets/nodes", goodID: vnetID + "/subnets/idle", message: "backendAddressPools/web"},
		{rule: "network-not-in-use", prepare: used, method: http.MethodDelete, id: vnetID, goodID: vnetID + "2", message: "Subnet nodes is in use by " + poolID + " and cannot be deleted."},
		{rule: "network-not-in-use", prepare: whole, method: http.MethodDelete, id: vnetID, goodID: vnetID + "2", message: "Virtual network vnet is in use by " + poolID},
		{rule: "network-not-in-use", prepare: withAddresses, method: http.MethodDelete, id: vnetID, goodID: pips + "a", message: "Subnet tiny is in use by "},
	}
}

func networkViolations() []ruleViolation {
	network := func(space, subnet string) string {
		return `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["` + space + `"]},"subnets":[{"name":"s","properties":{"addressPrefix":"` + subnet + `"}}]}}`
	}
	alone := func(prefix string) string { return `{"properties":{"addressPrefixes":["` + prefix + `"]}}` }
	return []ruleViolation{
		{rule: "address-prefix-format", id: vnetID + "3", bad: network("10.0.0.0/33", "10.0.0.0/24"), good: network("10.0.0.0/16", "10.0.0.0/24"), message: "10.0.0.0/33"},
		{rule: "address-prefix-format", id: vnetID + "3", bad: network("10.0.0.0/16", "10.0.0.4/24"), good: network("10.0.0.0/16", "10.0.0.0/24"), message: "10.0.0.4/24"},
		{rule: "subnet-in-network", id: vnetID + "3", bad: network("10.0.0.0/16", "10.1.0.0/24"), good: network("10.0.0.0/16", "10.0.255.0/24"), message: "Subnet 's' is not valid in virtual network 'vnet3'."},
		{rule: "subnet-in-network", id: vnetID + "/subnets/s", bad: alone("11.0.0.0/24"), good: alone("10.200.0.0/24"), message: "Subnet 's' is not valid in virtual network 'vnet'."},
	}
}

// Every rule has a case.
func TestValidationTable(t *testing.T) {
	codes, untested := map[string]string{}, map[string]bool{}
	for _, r := range armemu.Rules() {
		codes[r.Name], untested[r.Name] = cmp.Or(r.Under, r.Code), true
	}
	violations := slices.Concat(poolViolations(), memberViolations(), rootViolations(), frontendViolations(), balancingViolations(), publicIPViolations(), interfaceViolations(), membershipViolations(), basicViolations(), availabilitySetViolations(), backendPortViolations(), healthViolations(), globalViolations(), securityViolations(), networkViolations(), deleteViolations(), privateLinkViolations(), zoneViolations(), edgeZoneViolations())
	for _, b := range violations {
		delete(untested, b.rule)
		t.Run(b.rule, func(t *testing.T) { b.runViolation(t, codes[b.rule]) })
	}
	for name := range untested {
		t.Errorf("rule %s has no case", name)
	}
}

func (r ruleViolation) runViolation(t *testing.T, code string) {
	if r.method == "" {
		r.method = http.MethodPut
	}
	if r.id == "" {
		r.id = poolID
	}
	if r.goodID == "" {
		r.goodID = r.id
	}
	emu := newCloud(t, armemu.Options{Behavior: worlds.BatchedWrites(), Zones: r.zones})
	if r.prepare != nil {
		r.prepare(t, emu)
	}
	before := string(emu.Snapshot())
	a := sendRequest(t, emu, r.method, r.id, r.bad)
	if a.status != http.StatusBadRequest || a.errorCode() != code || strings.Contains(a.raw, `"details":[`) == strings.Contains(r.id, "Microsoft.Compute") || !strings.Contains(a.raw, strings.ReplaceAll(r.message, `"`, `\"`)) {
		t.Errorf("got %d %.600s\nwant 400 %s naming %s", a.status, a.raw, code, r.message)
	}
	if string(emu.Snapshot()) != before {
		t.Error("a refused write changed the cloud")
	}
	if a := sendRequest(t, emu, r.method, r.goodID, r.good); a.status >= 300 {
		t.Errorf("what keeps the rule is refused: %d %.600s", a.status, a.raw)
	}
}

func TestMalformedBodies(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	for _, body := range []string{
		``, `null`, `[]`, `{`, `{} {}`, `{"properties":[]}`, `{"name":3}`,
		`{"properties":{"loadBalancerBackendAddresses":{}}}`, `{"properties":{"name":"web"}}`,
		`{"properties":{"loadBalancerBackendAddresses":[7]}}`,
		`{"properties":{"loadBalancerBackendAddresses":[{"properties":{"ipAddress":7}}]}}`,
	} {
		if a := sendRequest(t, emu, http.MethodPut, poolID, body); a.status != 400 || a.errorCode() != "InvalidRequestFormat" {
			t.Errorf("%s: %d %s", body, a.status, a.raw)
		}
	}
	huge := `{"x":"` + strings.Repeat("a", 5<<20) + `"}`
	if a := sendRequest(t, emu, http.MethodPut, poolID, huge); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("5 MiB: %d", a.status)
	}
}

func TestReferenceShowsTheTable(t *testing.T) {
	referencepage.ExpectSection(t, "rules.md", "rules", armemu.RulesMarkdown())
}
