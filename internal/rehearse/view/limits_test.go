// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"testing"

	"weir.dev/weir/internal/rehearse"
)

func TestLimitsInText(t *testing.T) {
	text := Plan{Limits: []rehearse.Limit{
		{Resource: "kubernetes", Name: rehearse.LimitRules, Was: 4, Used: 4, Max: 1500},
		{Resource: "kubernetes", Name: rehearse.LimitFrontends, Was: 2, Used: 3, Max: 600},
		{Resource: "kubernetes", Name: rehearse.LimitMachineRules, Was: 260, Used: 280, Max: 299},
		{Resource: "nsg", Name: rehearse.LimitSecurityRules, Was: 5, Used: 6, Max: 1000},
	}}.FormatText(false)
	const want = `No changes (0 Services).
Limits: kubernetes 3/600 frontends, 280/299 rules of a machine; nsg 6/1000 security rules.
! kubernetes would have 280 of 299 rules of a machine. Beyond the limit, Weir rejects Services: move some to another load balancer (docs/runbooks/WeirRulesNearLimit.md).
`
	if text != want {
		t.Errorf("got:\n%swant:\n%s", text, want)
	}
	if text := (Plan{}).FormatText(false); strings.Contains(text, "Limits") {
		t.Errorf("a plan without limits shows some: %s", text)
	}
}
