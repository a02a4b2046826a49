// SPDX-License-Identifier: Apache-2.0

package armemu_test

import "strings"

// loadBalancerWithRules has the frontends pub and priv, the pools p and q, and the probe hp.
func loadBalancerWithRules(more ...string) string {
	return lb("Standard", `"frontendIPConfigurations":[`+publicFrontend("pub", "a")+`,`+privateFrontend("priv", nodesID, "")+`],
		"backendAddressPools":[{"name":"p"},{"name":"q"}]`+strings.Join(append([]string{""}, more...), ","))
}

func rule(name, frontend, pool, protocol, props string) string {
	return `{"name":"` + name + `","properties":{"frontendIPConfiguration":{"id":"` + otherLB + `/frontendIPConfigurations/` + frontend + `"},
		"backendAddressPool":{"id":"` + otherLB + `/backendAddressPools/` + pool + `"},"protocol":"` + protocol + `",` + props + `}}`
}

func ruleSet(list ...string) string {
	return loadBalancerWithRules(`"loadBalancingRules":[` + strings.Join(list, ",") + `]`)
}

func withProbe(props string) string {
	return loadBalancerWithRules(`"probes":[{"name":"hp","properties":{` + props + `}}]`)
}

func balancingViolations() []ruleViolation {
	const (
		p80      = `"frontendPort":80,"backendPort":80`
		p81      = `"frontendPort":81,"backendPort":80`
		floating = `,"enableFloatingIP":true`
		ha       = `"frontendPort":0,"backendPort":0`
	)
	single := func(props string) string { return ruleSet(rule("r", "pub", "p", "Tcp", props)) }
	nat := func(port string, rules ...string) string {
		return loadBalancerWithRules(`"loadBalancingRules":[`+strings.Join(rules, ",")+`]`, `"inboundNatRules":[{"name":"n","properties":{
			"frontendIPConfiguration":{"id":"`+otherLB+`/frontendIPConfigurations/pub"},"protocol":"tcp","frontendPort":`+port+`,"backendPort":22}}]`)
	}
	outbound := func(rules ...string) string {
		return loadBalancerWithRules(`"loadBalancingRules":[`+strings.Join(rules, ",")+`]`, `"outboundRules":[{"name":"o","properties":{
			"frontendIPConfigurations":[{"id":"`+otherLB+`/frontendIPConfigurations/pub"}],"backendAddressPool":{"id":"`+otherLB+`/backendAddressPools/q"}}}]`)
	}
	withoutFrontend := func(body string) string { return strings.Replace(body, publicFrontend("pub", "a")+",", "", 1) }
	cases := []ruleViolation{
		{rule: "rule-ports", bad: single(`"frontendPort":65535,"backendPort":80`), good: single(`"frontendPort":65534,"backendPort":80`), message: "65535"},
		{rule: "rule-ports", bad: single(`"frontendPort":80,"backendPort":65536`), good: single(`"frontendPort":80,"backendPort":65535`), message: "loadBalancingRules/r has invalid value of BackendPort (65536). The value must be between 1 and 65535."},
		{rule: "rule-ports", bad: ruleSet(rule("r", "priv", "p", "Tcp", ha)), good: ruleSet(rule("r", "priv", "p", "Tcp", p80)), message: "FrontendPort (0)"},
		{rule: "rule-idle-timeout", bad: single(p80 + `,"idleTimeoutInMinutes":3`), good: single(p80 + `,"idleTimeoutInMinutes":4`), message: "(3)"},
		{rule: "rule-idle-timeout", bad: single(p80 + `,"idleTimeoutInMinutes":101`), good: single(p80 + `,"idleTimeoutInMinutes":100`), message: "(101)"},
		{rule: "ha-ports-whole", bad: ruleSet(rule("r", "priv", "p", "All", p80)), good: ruleSet(rule("r", "priv", "p", "All", ha)), message: "protocol All"},
		{rule: "rule-pools-agree", bad: single(p80 + `,"backendAddressPools":[{"id":"` + otherLB + `/backendAddressPools/q"}]`), good: single(p80 + `,"backendAddressPools":[{"id":"` + otherLB + `/backendAddressPools/P"}]`), message: "loadBalancingRules/r"},
		{rule: "ha-ports-internal", bad: ruleSet(rule("r", "pub", "p", "All", ha)), good: ruleSet(rule("r", "priv", "p", "All", ha)), message: "loadBalancingRules/r"},
		{rule: "ha-ports-internal", bad: strings.Replace(withoutFrontend(ruleSet(rule("r", "priv", "p", "All", ha))), "Standard", "Basic", 1), good: withoutFrontend(ruleSet(rule("r", "priv", "p", "All", ha))), message: "loadBalancingRules/r"},
		{rule: "frontend-port-once", bad: ruleSet(rule("r", "pub", "p", "Tcp", p80), rule("s", "pub", "q", "TCP", p80)), good: ruleSet(rule("r", "pub", "p", "Tcp", p80), rule("s", "pub", "q", "Udp", p80)), message: "loadBalancingRules/s"},
		{rule: "frontend-port-once", bad: nat("80", rule("r", "pub", "p", "Tcp", p80)), good: nat("22", rule("r", "pub", "p", "Tcp", p80)), message: "inboundNatRules/n"},
		{rule: "backend-port-once", bad: ruleSet(rule("r", "pub", "p", "Tcp", p80), rule("s", "pub", "p", "Tcp", p81)), good: ruleSet(rule("r", "pub", "p", "Tcp", p80), rule("s", "pub", "q", "Tcp", p81)), message: "backendaddresspools/p"},
		{rule: "backend-port-once", bad: ruleSet(rule("r", "pub", "p", "Tcp", p80), rule("s", "priv", "p", "Tcp", p80)), good: ruleSet(rule("r", "pub", "p", "Tcp", p80+floating), rule("s", "priv", "p", "Tcp", p80+floating)), message: "floating IP disabled"},
		{rule: "backend-port-once-floating", bad: ruleSet(rule("r", "pub", "p", "Tcp", p80+floating), rule("s", "pub", "p", "Tcp", p81+floating)), good: ruleSet(rule("r", "pub", "p", "Tcp", p80+floating), rule("s", "pub", "p", "Udp", p81+floating)), message: "floating IP enabled"},
		{rule: "snat-disabled-beside-outbound-rule", bad: outbound(rule("r", "pub", "p", "Tcp", p80)), good: outbound(rule("r", "pub", "p", "Tcp", p80+`,"disableOutboundSnat":true`)), message: "outbound rule o"},
		{rule: "references-exist", bad: withoutFrontend(outbound()), good: outbound(), message: "frontendipconfigurations/pub referenced by resource " + otherLB + "/outboundRules/o"},
		{rule: "references-exist", bad: withoutFrontend(nat("22")), good: nat("22"), message: "frontendipconfigurations/pub referenced by resource " + otherLB + "/inboundNatRules/n"},
		{rule: "references-exist", bad: strings.ReplaceAll(single(p80), otherLB+"/backendAddressPools/p", lbID+"/backendAddressPools/web"), good: single(p80), message: "kubernetes/backendaddresspools/web"},
		{rule: "probe-interval", bad: withProbe(`"protocol":"Tcp","port":80,"intervalInSeconds":4`), good: withProbe(`"protocol":"Tcp","port":80,"intervalInSeconds":5`), message: "(4). The value must be between 5 and 2147483646."},
		{rule: "probe-interval", bad: withProbe(`"protocol":"Tcp","port":80,"intervalInSeconds":2147483647`), good: withProbe(`"protocol":"Tcp","port":80,"intervalInSeconds":2147483646`), message: "2147483647"},
		{rule: "probe-port", bad: withProbe(`"protocol":"Tcp","port":0`), good: withProbe(`"protocol":"Tcp","port":65535`), message: "probes/hp has invalid value of Port (0)"},
		{rule: "probe-count", bad: withProbe(`"protocol":"Tcp","port":80,"numberOfProbes":0`), good: withProbe(`"protocol":"Tcp","port":80,"numberOfProbes":1`), message: "NumberOfProbes (0)"},
		{rule: "probe-count", bad: withProbe(`"protocol":"Tcp","port":80,"intervalInSeconds":5,"numberOfProbes":429496730`), good: withProbe(`"protocol":"Tcp","port":80,"intervalInSeconds":5,"numberOfProbes":429496729`), message: "between 1 and 429496729"},
		{rule: "probe-threshold", bad: withProbe(`"protocol":"Tcp","port":80,"probeThreshold":0`), good: withProbe(`"protocol":"Tcp","port":80,"probeThreshold":1`), message: "ProbeThreshold (0)"},
		{rule: "probe-path-http", bad: withProbe(`"protocol":"Http","port":80`), good: withProbe(`"protocol":"Http","port":80,"requestPath":"/"`), message: "protocol Http"},
		{rule: "probe-path-tcp", bad: withProbe(`"protocol":"Tcp","port":80,"requestPath":"/"`), good: withProbe(`"protocol":"Tcp","port":80`), message: "protocol Tcp"},
		{rule: "https-probe-needs-standard", bad: strings.Replace(withoutFrontend(withProbe(`"protocol":"Https","port":443,"requestPath":"/"`)), "Standard", "Basic", 1), good: withoutFrontend(withProbe(`"protocol":"Https","port":443,"requestPath":"/"`)), message: "Basic"},
	}
	for i := range cases {
		cases[i].prepare = withAddresses
		cases[i].id = otherLB
	}
	return cases
}
