// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"strings"
	"testing"

	"weir.dev/weir/internal/loadbalancer/plan"
)

func TestLimitsInText(t *testing.T) {
	text := Report{Limits: []plan.LimitUsage{
		{Resource: "kubernetes", Name: plan.LimitRules, Was: 4, Used: 4, Max: 1500},
		{Resource: "kubernetes", Name: plan.LimitFrontends, Was: 2, Used: 3, Max: 600},
		{Resource: "kubernetes", Name: plan.LimitMachineRules, Was: 260, Used: 280, Max: 299},
		{Resource: "nsg", Name: plan.LimitSecurityRules, Was: 5, Used: 6, Max: 1000},
		{Resource: "kubernetes", Name: plan.LimitAvailabilitySets, Was: 140, Used: 140, Max: 150},
	}}.FormatText(false)
	const want = `No changes (0 Services).
Limits: kubernetes 3/600 frontends, 280/299 rules of a machine; nsg 6/1000 security rules.
! kubernetes would have 280 of 299 rules of a machine. Beyond the limit, Weir rejects Services: move some to another load balancer (docs/runbooks/WeirLimitNear.md).
! kubernetes would have machines of up to 140 of 150 availability sets of a pool; a machine in none counts as one. Beyond the limit, Azure rejects further machines in the pool: create machines in availability sets or scale sets, or set loadBalancerBackendPoolConfigurationType to nodeIP.
`
	if text != want {
		t.Errorf("got:\n%swant:\n%s", text, want)
	}
	if text := (Report{}).FormatText(false); strings.Contains(text, "Limits") {
		t.Errorf("a plan without limits shows some: %s", text)
	}
}
