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
	pips      = group + "/publicIPAddresses/"
	pipRanges = group + "/publicIPPrefixes/"
	nics      = group + "/networkInterfaces/"
	nodesID   = vnetID + "/subnets/nodes"
	tinyID    = vnetID + "/subnets/tiny" // 10.1.0.0/29: three usable addresses
	otherLB   = group + "/loadBalancers/other"
	static    = `"publicIPAllocationMethod":"Static"`
)

// withAddresses has the public IPs a and b (free), used (by the frontend fe of the load balancer
// user) and z (by the zonal frontend of zonal), all Standard; the Basic public IP old, the prefix
// range of two, and the subnets tiny and six (IPv6).
func withAddresses(t *testing.T, emu *armemu.Emulator) {
	putResource(t, emu, pips+"a", lb("Standard", static))
	putResource(t, emu, pips+"b", lb("Standard", static+`,"dnsSettings":{"domainNameLabel":"shop"}`))
	putResource(t, emu, pips+"used", lb("Standard", static))
	putResource(t, emu, pips+"z", lb("Standard", static))
	putResource(t, emu, pips+"old", lb("Basic", static))
	putResource(t, emu, pipRanges+"range", lb("Standard", `"prefixLength":31`))
	putResource(t, emu, tinyID, `{"properties":{"addressPrefix":"10.1.0.0/29"}}`)
	putResource(t, emu, vnetID+"/subnets/six", `{"properties":{"addressPrefixes":["10.2.0.0/24","fd00::/64"]}}`)
	putResource(t, emu, group+"/loadBalancers/zonal", withFrontends(strings.Replace(publicFrontend("z", "z"), `"name"`, `"zones":["1","2"],"name"`, 1)))
	putResource(t, emu, group+"/loadBalancers/user", lb("Standard", `"frontendIPConfigurations":[`+publicFrontend("fe", "used")+`,`+privateFrontend("in", tinyID, "10.1.0.4")+`],
		"backendAddressPools":[{"name":"p"},{"name":"q"},{"name":"ips","properties":{"loadBalancerBackendAddresses":[`+addressIn(vnetID, "n", "10.0.0.9")+`]}}]`))
}

func withGateway(t *testing.T, emu *armemu.Emulator) {
	withAddresses(t, emu)
	putResource(t, emu, group+"/loadBalancers/gateway", lb("Gateway", internalFrontends))
}

// The interface of the machine vm in the pool user/p.
func withInterface(t *testing.T, emu *armemu.Emulator) {
	withAddresses(t, emu)
	putResource(t, emu, nics+"nic", nic(userPool("p")))
	putResource(t, emu, nics+"spare", nic(userPool("q")))
	putResource(t, emu, strings.Replace(group, "Network", "Compute", 1)+"/virtualMachines/vm",
		`{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nics+`nic"}]}}}`)
}

func publicFrontend(name, pip string) string {
	return `{"name":"` + name + `","properties":{"publicIPAddress":{"id":"` + pips + pip + `"}}}`
}

func privateFrontend(name, subnet, address string) string {
	method := `"privateIPAllocationMethod":"Dynamic"`
	if address != "" {
		method = `"privateIPAllocationMethod":"Static","privateIPAddress":"` + address + `"`
	}
	return `{"name":"` + name + `","properties":{"subnet":{"id":"` + subnet + `"},` + method + `}}`
}

// chained returns a frontend with the frontend in of a load balancer as gateway load balancer.
func chained(frontend, gateway string) string {
	return strings.Replace(frontend, `"properties":{`, `"properties":{"gatewayLoadBalancer":{"id":"`+group+`/loadBalancers/`+gateway+`/frontendIPConfigurations/in"},`, 1)
}

var internalFrontends = `"frontendIPConfigurations":[` + privateFrontend("in", nodesID, "") + `]`

func userPool(name string) string { return group + "/loadBalancers/user/backendAddressPools/" + name }

func nic(pool string) string {
	return `{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{
		"subnet":{"id":"` + nodesID + `"},"loadBalancerBackendAddressPools":[{"id":"` + pool + `"}]}}]}}`
}

func withFrontends(list ...string) string {
	return lb("Standard", `"frontendIPConfigurations":[`+strings.Join(list, ",")+`]`)
}

func frontendViolations() []ruleViolation {
	both := strings.Replace(privateFrontend("fe", nodesID, ""), `"subnet"`, `"publicIPAddress":{"id":"`+pips+`a"},"subnet"`, 1)
	six := strings.Replace(privateFrontend("six", vnetID+"/subnets/six", ""), `"subnet"`, `"privateIPAddressVersion":"IPv6","subnet"`, 1)
	cases := []ruleViolation{
		{rule: "frontend-has-address", bad: withFrontends(`{"name":"fe"}`), good: withFrontends(publicFrontend("fe", "a")), message: "frontendIPConfigurations/fe"},
		{rule: "frontend-has-address", id: lbID, bad: strings.Replace(lbBody(`{"name":"web"}`), `{"name":"fe"}`, `{"name":"fe"},{"name":"new"}`, 1), good: lbBody(`{"name":"web"}`), message: "frontendIPConfigurations/new"},
		{rule: "frontend-has-address", id: group + "/loadBalancers/user", bad: withFrontends(`{"name":"fe"}`), good: withFrontends(publicFrontend("fe", "used")), message: "frontendIPConfigurations/fe"},
		{rule: "frontend-not-both", bad: withFrontends(both), good: withFrontends(privateFrontend("fe", nodesID, "")), message: "frontendIPConfigurations/fe"},
		{rule: "ip-configuration-references-exist", bad: withFrontends(publicFrontend("fe", "none")), good: withFrontends(publicFrontend("fe", "a")), message: "publicIPAddresses/none"},
		{rule: "ip-configuration-references-exist", bad: withFrontends(privateFrontend("fe", vnetID+"/subnets/none", "")), good: withFrontends(privateFrontend("fe", nodesID, "")), message: "subnets/none"},
		{rule: "public-ip-once", bad: withFrontends(publicFrontend("x", "a"), publicFrontend("y", "A")), good: withFrontends(publicFrontend("x", "a"), publicFrontend("y", "b")), message: "publicIPAddresses/a"},
		{rule: "public-ip-free", bad: withFrontends(publicFrontend("fe", "used")), good: withFrontends(publicFrontend("fe", "a")), message: "user/frontendIPConfigurations/fe"},
		{rule: "public-ip-sku", bad: withFrontends(publicFrontend("fe", "old")), good: withFrontends(publicFrontend("fe", "a")), message: "Standard sku load balancer"},
		{rule: "public-ip-sku", bad: strings.Replace(withFrontends(publicFrontend("fe", "a")), `"sku":{"name":"Standard"},`, "", 1), good: strings.Replace(withFrontends(publicFrontend("fe", "old")), "Standard", "Basic", 1), message: "Basic sku load balancer"},
		{rule: "frontend-zones-fixed", bad: withFrontends(strings.Replace(privateFrontend("z", nodesID, ""), `"name"`, `"zones":["1"],"name"`, 1)), good: withFrontends(strings.Replace(privateFrontend("z", nodesID, ""), `"name"`, `"zones":["2","1"],"name"`, 1)), message: "frontendIPConfigurations/z", id: group + "/loadBalancers/zonal"},
		{rule: "frontend-zones-public", bad: withFrontends(strings.Replace(publicFrontend("fe", "a"), `"name"`, `"zones":["1"],"name"`, 1)), good: withFrontends(strings.Replace(privateFrontend("fe", nodesID, ""), `"name"`, `"zones":["1"],"name"`, 1)), message: "cannot have zones"},
		{rule: "gateway-load-balancer", prepare: withGateway, bad: withFrontends(chained(publicFrontend("fe", "a"), "user")), good: withFrontends(chained(publicFrontend("fe", "a"), "gateway")), message: "loadBalancers/user/frontendIPConfigurations/in"},
		{rule: "gateway-load-balancer", prepare: withGateway, bad: withFrontends(chained(publicFrontend("fe", "a"), "none")), good: withFrontends(publicFrontend("fe", "a")), message: "loadBalancers/none/frontendIPConfigurations/in"},
		{rule: "gateway-load-balancer", prepare: withGateway, bad: withFrontends(chained(privateFrontend("fe", nodesID, ""), "gateway")), good: withFrontends(privateFrontend("fe", nodesID, "")), message: "loadBalancers/gateway/frontendIPConfigurations/in"},
		{rule: "frontend-ipv4", bad: withFrontends(six), good: withFrontends(six, publicFrontend("fe", "a")), message: "At least one IPv4"},
		{rule: "static-private-address", bad: withFrontends(privateFrontend("fe", nodesID, "10.0.0")), good: withFrontends(privateFrontend("fe", nodesID, "10.0.0.4")), message: `"10.0.0"`},
		{rule: "private-address-in-subnet", bad: withFrontends(privateFrontend("fe", nodesID, "10.1.0.5")), good: withFrontends(privateFrontend("fe", nodesID, "10.0.1.5")), message: "10.0.0.0/16"},
		{rule: "private-address-not-reserved", bad: withFrontends(privateFrontend("fe", tinyID, "10.1.0.3")), good: withFrontends(privateFrontend("fe", tinyID, "10.1.0.5")), message: "10.1.0.3"},
		{rule: "private-address-not-reserved", bad: withFrontends(privateFrontend("fe", tinyID, "10.1.0.7")), good: withFrontends(privateFrontend("fe", tinyID, "10.1.0.6")), message: "10.1.0.7"},
		{rule: "private-address-free", bad: withFrontends(privateFrontend("fe", tinyID, "10.1.0.4")), good: withFrontends(privateFrontend("fe", tinyID, "10.1.0.5")), message: "user/frontendIPConfigurations/in"},
		{rule: "private-address-free", bad: withFrontends(privateFrontend("x", tinyID, "10.1.0.5"), privateFrontend("y", tinyID, "10.1.0.5")), good: withFrontends(privateFrontend("x", tinyID, "10.1.0.5"), privateFrontend("y", tinyID, "10.1.0.6")), message: "other/frontendIPConfigurations/x"},
		{rule: "subnet-has-room", bad: withFrontends(privateFrontend("x", tinyID, ""), privateFrontend("y", tinyID, ""), privateFrontend("z", tinyID, "")), good: withFrontends(privateFrontend("x", tinyID, ""), privateFrontend("y", tinyID, "")), message: "frontendIPConfigurations/z"},
	}
	for i := range cases {
		if cases[i].prepare == nil {
			cases[i].prepare = withAddresses
		}
		if cases[i].id == "" {
			cases[i].id = otherLB
		}
	}
	return cases
}

func interfaceViolations() []ruleViolation {
	user := group + "/loadBalancers/user"
	cases := []ruleViolation{
		{rule: "nic-pool-not-mixed", id: nics + "new", bad: nic(userPool("ips")), good: nic(userPool("q")), message: "user/backendAddressPools/ips"},
		{rule: "ip-and-nic-not-mixed", id: userPool("p"), bad: poolBody("10.0.0.8"), good: poolWith("", poolEntry("rg_nicip", nicRef("nic"), "")), message: "both"},
		{rule: "nic-not-in-use", method: http.MethodDelete, id: nics + "nic", goodID: nics + "spare", message: "virtualMachines/vm"},
		{rule: "nic-pools-stay", id: user, bad: lb("Standard", internalFrontends+`,"backendAddressPools":[{"name":"q"}]`), good: lb("Standard", internalFrontends+`,"backendAddressPools":[{"name":"q"},{"name":"P"}]`), message: "networkInterfaces/nic"},
		{rule: "pool-not-in-use", method: http.MethodDelete, id: userPool("p"), goodID: userPool("ips"), message: "networkInterfaces/nic"},
		{rule: "subnet-not-in-use", method: http.MethodDelete, id: nodesID, goodID: vnetID + "/subnets/six", message: "networkInterfaces/nic"},
		{rule: "subnet-not-in-use", method: http.MethodDelete, id: tinyID, goodID: vnetID + "/subnets/six", message: "user/frontendIPConfigurations/in"},
		{
			rule: "subnets-in-use-stay", id: vnetID, bad: `{"location":"eastus","properties":{"subnets":[{"name":"nodes"},{"name":"six"}]}}`,
			good: `{"location":"eastus","properties":{"subnets":[{"name":"nodes"},{"name":"tiny"}]}}`, message: "Subnet tiny",
		},
	}
	for i := range cases {
		cases[i].prepare = withInterface
	}
	return cases
}

func publicIPViolations() []ruleViolation {
	fromRange := func(sku, more string) string {
		return lb(sku, static+more+`,"publicIPPrefix":{"id":"`+pipRanges+`range"}`)
	}
	labelled := func(label string) string {
		return lb("Standard", static+`,"dnsSettings":{"domainNameLabel":"`+label+`"}`)
	}
	zoned := func(zones string) string {
		return strings.Replace(lb("Standard", static), `"location"`, `"zones":[`+zones+`],"location"`, 1)
	}
	tagged := func(tag string) string {
		return lb("Standard", static+`,"ipTags":[{"ipTagType":"FirstPartyUsage","tag":"`+tag+`"}]`)
	}
	exhausted := func(t *testing.T, emu *armemu.Emulator) {
		withAddresses(t, emu)
		putResource(t, emu, pips+"r1", fromRange("Standard", ""))
		putResource(t, emu, pips+"r2", fromRange("Standard", ""))
		putResource(t, emu, pips+"zoned", zoned(`"1","2"`))
		putResource(t, emu, pips+"tagged", tagged("/Sql"))
		putResource(t, emu, pipRanges+"idle", lb("Standard", `"prefixLength":30`))
	}
	cases := []ruleViolation{
		{rule: "public-ip-static", bad: lb("Standard", `"publicIPAllocationMethod":"Dynamic"`), good: lb("Standard", static), message: "AllocationMethod set to Static"},
		{rule: "public-ip-static", bad: lb("Standard", ""), good: lb("Basic", ""), message: "new"},
		{rule: "global-needs-standard", bad: strings.Replace(lb("Basic", ""), `"name":"Basic"`, `"name":"Basic","tier":"Global"`, 1), good: strings.Replace(lb("Standard", static), `"name":"Standard"`, `"name":"Standard","tier":"Global"`, 1), message: "new"},
		{rule: "public-ip-idle-timeout", bad: lb("Standard", static+`,"idleTimeoutInMinutes":31`), good: lb("Standard", static+`,"idleTimeoutInMinutes":30`), message: "31"},
		{rule: "domain-name-label", bad: labelled("Web"), good: labelled("web"), message: "Web"},
		{rule: "domain-name-free", bad: labelled("shop"), good: strings.Replace(labelled("shop"), "eastus", "westus", 1), message: "shop.eastus.cloudapp.azure.com"},
		{rule: "prefix-exists", bad: strings.Replace(fromRange("Standard", ""), "/range", "/none", 1), good: strings.Replace(fromRange("Standard", ""), "/range", "/idle", 1), message: "publicIPPrefixes/none"},
		{rule: "prefix-fits", bad: strings.Replace(fromRange("Basic", ""), "/range", "/idle", 1), good: strings.Replace(fromRange("Standard", ""), "/range", "/idle", 1), message: "idle"},
		{rule: "prefix-fits", bad: strings.Replace(fromRange("Standard", `,"publicIPAddressVersion":"IPv6"`), "/range", "/idle", 1), good: strings.Replace(fromRange("Standard", `,"publicIPAddressVersion":"IPv4"`), "/range", "/idle", 1), message: "IPv6"},
		{rule: "prefix-has-room", bad: fromRange("Standard", ""), good: strings.Replace(fromRange("Standard", ""), "/range", "/idle", 1), message: "publicIPPrefixes/range"},
		{rule: "public-ip-not-in-use", method: http.MethodDelete, id: pips + "used", goodID: pips + "a", message: "user/frontendIPConfigurations/fe"},
		{rule: "public-ip-sku-fixed", id: pips + "a", bad: lb("Basic", static), goodID: pips + "old", good: lb("Standard", static), message: "from Standard to Basic"},
		{rule: "public-ip-family-fixed", id: pips + "a", bad: lb("Standard", static+`,"publicIPAddressVersion":"IPv6"`), good: lb("Standard", static+`,"publicIPAddressVersion":"IPv4"`), message: "publicIPAddressVersion"},
		{rule: "public-ip-tags-fixed", id: pips + "tagged", bad: tagged("/Storage"), good: tagged("/Sql"), message: "ipTags"},
		{rule: "public-ip-tags-fixed", id: pips + "a", bad: tagged("/Sql"), good: lb("Standard", static+`,"ipTags":[]`), message: "ipTags"},
		{rule: "public-ip-prefix-fixed", id: pips + "r1", bad: lb("Standard", static), good: fromRange("Standard", ""), message: "publicIPPrefix"},
		{rule: "zones-fixed", id: pips + "zoned", bad: zoned(`"1"`), good: zoned(`"2","1"`), message: "zoned"},
		{rule: "zones-fixed", id: pips + "zoned", bad: lb("Standard", static), good: zoned(`"1","2"`), message: "zoned"},
		{rule: "prefix-length", id: pipRanges + "new", bad: lb("Standard", `"prefixLength":27`), good: lb("Standard", `"prefixLength":28`), message: "28 to 31"},
		{rule: "prefix-length", id: pipRanges + "new", bad: lb("Standard", `"prefixLength":28,"publicIPAddressVersion":"IPv6"`), good: lb("Standard", `"prefixLength":124,"publicIPAddressVersion":"IPv6"`), message: "124 to 127"},
		{rule: "prefix-length", id: pipRanges + "new", bad: lb("Basic", `"prefixLength":28`), good: lb("Standard", `"prefixLength":28`), message: "Basic"},
		{rule: "prefix-length-fixed", id: pipRanges + "range", bad: lb("Standard", `"prefixLength":30`), good: lb("Standard", `"prefixLength":31`), message: "range"},
		{rule: "prefix-not-in-use", method: http.MethodDelete, id: pipRanges + "range", goodID: pipRanges + "idle", message: "publicIPAddresses/r1"},
	}
	for i := range cases {
		cases[i].prepare = exhausted
		if cases[i].id == "" {
			cases[i].id = pips + "new"
		}
	}
	basic := func(t *testing.T, emu *armemu.Emulator) {
		withAddresses(t, emu)
		putResource(t, emu, basicID, strings.Replace(withFrontends(publicFrontend("fe", "old")), "Standard", "Basic", 1))
		putResource(t, emu, pips+"idle", lb("Basic", static))
	}
	full := func(t *testing.T, emu *armemu.Emulator) {
		for i := range 1000 {
			putResource(t, emu, fmt.Sprintf("%sfiller%d", pips, i), strings.Replace(lb("Standard", static), "eastus", "westus", 1))
		}
	}
	late := func(t *testing.T, emu *armemu.Emulator) {
		full(t, emu)
		putResource(t, emu, pips+"late", strings.Replace(lb("Basic", static), "eastus", "westus", 1))
	}
	return append(cases,
		ruleViolation{rule: "public-ip-stays-static", prepare: basic, id: pips + "old", bad: lb("Basic", ""), goodID: pips + "idle", good: lb("Basic", ""), message: "basic/frontendIPConfigurations/fe"},
		ruleViolation{rule: "public-ip-sku-fixed", prepare: basic, id: pips + "old", bad: lb("Standard", static), goodID: pips + "idle", good: lb("Standard", static), message: "from Basic to Standard"},
		ruleViolation{rule: "public-ip-limit", prepare: full, id: pips + "new", bad: strings.Replace(lb("Standard", static), "eastus", "westus", 1), good: lb("Standard", static), message: "1000"},
		ruleViolation{rule: "standard-public-ip-limit", prepare: late, id: pips + "late", bad: strings.Replace(lb("Standard", static), "eastus", "westus", 1), good: strings.Replace(lb("Basic", static), "eastus", "westus", 1), message: "1000 IPv4 Standard"},
	)
}
