// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

func inEdgeZone(name, body string) string {
	return strings.Replace(body, `"location"`, `"extendedLocation":{"name":"`+name+`","type":"EdgeZone"},"location"`, 1)
}

func edgeZoneViolations() []ruleViolation {
	const edgeIP, edgeLB, regionLB, link = pips + "edge", group + "/loadBalancers/edge", group + "/loadBalancers/region", group + "/privateLinkServices/new"
	zoned := func(body string) string { return strings.Replace(body, `"location"`, `"zones":["1"],"location"`, 1) }
	ip, at := lb("Standard", static), func(pip string) string { return inEdgeZone("losangeles", withFrontends(publicFrontend("fe", pip))) }
	prepare := func(t *testing.T, emu *armemu.Emulator) {
		withPrivateLink(t, emu)
		putResource(t, emu, edgeIP, inEdgeZone("losangeles", ip))
		putResource(t, emu, pips+"region", ip)
		putResource(t, emu, pips+"perth", inEdgeZone("perth", ip))
	}
	cases := []ruleViolation{
		{rule: "edge-zone-fixed", id: edgeIP, bad: ip, good: inEdgeZone("LosAngeles", ip), message: "already exists in extended location 'losangeles'"},
		{rule: "edge-zone-fixed", id: pips + "region", bad: inEdgeZone("perth", ip), good: ip, message: "region"},
		{rule: "edge-zone-without-zones", id: pips + "new", bad: inEdgeZone("perth", zoned(ip)), good: inEdgeZone("perth", ip), message: "publicIPAddresses/new"},
		{
			rule: "edge-zone-without-zones", id: edgeLB, bad: inEdgeZone("perth", withFrontends(strings.Replace(privateFrontend("fe", nodesID, ""), `"name"`, `"zones":["1"],"name"`, 1))),
			good: inEdgeZone("perth", withFrontends(privateFrontend("fe", nodesID, ""))), message: "loadBalancers/edge",
		},
		{rule: "edge-zone-standard", id: pips + "new", bad: inEdgeZone("perth", lb("Basic", static)), good: lb("Basic", static), message: "sku Standard"},
		{rule: "edge-zone-references", id: edgeLB, bad: at("region"), good: at("edge"), message: "publicIPAddresses/region"},
		{rule: "edge-zone-references", id: edgeLB, bad: at("perth"), good: at("edge"), message: "in extended location 'perth'"},
		{rule: "edge-zone-references", id: regionLB, bad: withFrontends(publicFrontend("fe", "edge")), good: withFrontends(publicFrontend("fe", "region")), message: "publicIPAddresses/edge"},
		{rule: "edge-zone-references", id: link, bad: inEdgeZone("perth", privateLinkBody("free", "")), good: privateLinkBody("free", ""), message: "loadBalancers/free"},
	}
	for i := range cases {
		cases[i].prepare = prepare
	}
	return cases
}
