// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

const nsgID = group + "/networkSecurityGroups/nsg"

// securityRule is valid except for replacements, pair by pair.
func securityRule(name string, replaced ...string) string {
	const rule = `{"name":"NAME","properties":{"priority":500,"direction":"Inbound","access":"Allow","protocol":"Tcp","sourceAddressPrefix":"Internet",` +
		`"sourcePortRange":"*","destinationAddressPrefixes":["20.0.0.1","20.0.0.2"],"destinationPortRanges":["80","443"]}}`
	return strings.NewReplacer(append([]string{"NAME", name}, replaced...)...).Replace(rule)
}

func securityGroup(rules ...string) string {
	return `{"location":"eastus","properties":{"securityRules":[` + strings.Join(rules, ",") + `]}}`
}

func securityViolations() []ruleViolation {
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = securityRule(fmt.Sprint("r", i), `"priority":500`, fmt.Sprintf(`"priority":%d`, 100+i))
		}
		return securityGroup(list...)
	}
	wide := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"10.%d.%d.0/24"`, i/250, i%250)
		}
		return securityGroup(securityRule("r", `"sourceAddressPrefix":"Internet"`, `"sourceAddressPrefixes":[`+strings.Join(list, ",")+`]`))
	}
	good := securityGroup(securityRule("r"))
	with := func(replaced ...string) string { return securityGroup(securityRule("r", replaced...)) }
	const destinations = `["20.0.0.1","20.0.0.2"]`
	cases := []ruleViolation{
		{rule: "security-rule-limit", bad: many(1001), good: many(1000), message: "1001"},
		{rule: "security-prefix-limit", bad: wide(4001), good: wide(4000), message: "4001 source"},
		{rule: "security-rule-complete", bad: with(`"Allow"`, `"Maybe"`), good: with(`"Allow"`, `"deny"`), message: `access "Maybe"`},
		{rule: "security-rule-complete", bad: with(`"protocol":"Tcp",`, ""), good: with(`"Tcp"`, `"*"`), message: "protocol"},
		{rule: "security-rule-complete", bad: with(`"sourceAddressPrefix"`, `"sourceAddressPrefixes":["10.0.0.0/8"],"sourceAddressPrefix"`), good: with(`"sourceAddressPrefix"`, `"sourceAddressPrefixes":[],"sourceAddressPrefix"`), message: "sourceAddressPrefix"},
		{rule: "security-rule-complete", bad: with(destinations, "[]"), good: with(`"destinationAddressPrefixes":`+destinations, `"destinationApplicationSecurityGroups":[{"id":"/asg"}]`), message: "destinationAddressPrefix"},
		{rule: "security-rule-priority", bad: with("500", "99"), good: with("500", "100"), message: "99"},
		{rule: "security-rule-priority", bad: with("500", "4097"), good: with("500", "4096"), message: "4097"},
		{rule: "security-rule-description", bad: with(`"priority"`, `"description":"`+strings.Repeat("é", 141)+`","priority"`), good: with(`"priority"`, `"description":"`+strings.Repeat("é", 140)+`","priority"`), message: "141 characters"},
		{rule: "security-rule-conflict", bad: securityGroup(securityRule("a"), securityRule("b")), good: securityGroup(securityRule("a"), securityRule("b", "Inbound", "Outbound")), message: "rule a conflicts with rule b"},
		{rule: "security-rule-prefix", bad: with("Internet", "NoSuchTag"), good: with("Internet", "Storage.WestEurope"), message: "Value provided: NoSuchTag"},
		{rule: "security-rule-prefix", bad: with("Internet", "10.0.0.1/8"), good: with("Internet", "10.0.0.0/8"), message: "10.0.0.1/8"},
		{rule: "security-rule-many", bad: with(destinations, `["20.0.0.1","VirtualNetwork"]`), good: with(destinations, `["20.0.0.1"]`), message: "Unsupported value used: VirtualNetwork"},
		{rule: "security-rule-family", bad: with("Internet", "2001:db8::/32"), good: with("Internet", "10.0.0.0/8"), message: "different address families"},
		{rule: "security-rule-overlap", bad: with(destinations, `["20.0.0.1","20.0.0.0/24"]`), good: good, message: "20.0.0.0/24"},
		{rule: "security-rule-port", bad: with(`"443"`, `"90-80"`), good: with(`"443"`, `"80-90"`), message: "90-80"},
		{rule: "security-rule-port", bad: with(`"443"`, `"65536"`), good: with(`"443"`, `"65535"`), message: "65536"},
		{rule: "child-names-unique", bad: securityGroup(securityRule("a"), securityRule("A", "500", "501")), good: securityGroup(securityRule("a"), securityRule("b", "500", "501")), message: "(A)"},
		{rule: "security-group-not-in-use", prepare: withSecurityGroups, method: http.MethodDelete, id: nsgID, goodID: nsgID + "2", message: "networkInterfaces/n"},
	}
	for i := range cases {
		if cases[i].id == "" {
			cases[i].id = nsgID
		}
	}
	return cases
}

func withSecurityGroups(t *testing.T, emu *armemu.Emulator) {
	putResource(t, emu, nsgID, securityGroup())
	putResource(t, emu, nsgID+"2", securityGroup())
	putResource(t, emu, vnetID, `{"location":"eastus","properties":{"subnets":[{"name":"nodes","properties":{"networkSecurityGroup":{"id":"`+nsgID+`"}}}]}}`)
	putResource(t, emu, group+"/networkInterfaces/n", `{"location":"eastus","properties":{"networkSecurityGroup":{"id":"`+strings.ToUpper(nsgID)+`"},"ipConfigurations":[]}}`)
}

func TestASecurityGroupShowsWhereItIs(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	withSecurityGroups(t, emu)
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, nsgID, `{"location":"eastus","properties":{"subnets":[],"networkInterfaces":[{"id":"/x"}]}}`))
	shown, _ := emu.Get(nsgID)
	for _, want := range []string{`"subnets":[{"id":"` + vnetID + `/subnets/nodes"}]`, `"networkInterfaces":[{"id":"` + group + `/networkInterfaces/n"}]`} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("no %s in %s", want, shown)
		}
	}
}
