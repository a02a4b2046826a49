// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"testing"
)

// Without floating IP an all-ports rule would include all ports of the nodes, so no Service opens or closes
// them.
func TestNobodyHasAllPortsOfTheNodes(t *testing.T) {
	direct, all := with(DisableFloatingIP, "true"), with(HAPorts, "true")
	for about, s := range map[string]Service{
		"opened": web(internal, direct, all, ranges("0.0.0.0/0")),
		"closed": web(internal, direct, all, ranges("192.0.2.0/24"), with(DenyAllExcept, "true")),
		"by tag": web(internal, direct, all, with(AllowedServiceTags, "Internet")),
	} {
		w, problems := Desired(s, settings())
		if len(problems) != 1 || problems[0].Field != HAPorts {
			t.Errorf("%s: %v", about, problems)
		}
		if got := w.Admissions([]netip.Addr{front4}, []netip.Addr{node4}); len(got) > 0 {
			t.Errorf("%s:\n%s", about, spellAdmissions(got))
		}
	}
	for about, s := range map[string]Service{
		"nobody is named": web(internal, direct, all),
		"no rules":        web(internal, direct, all, ranges("0.0.0.0/0"), with(DisableSecurityRules, "true")),
	} {
		if got := desired(t, s, settings()).Admissions([]netip.Addr{front4}, []netip.Addr{node4}); len(got) > 0 {
			t.Errorf("%s:\n%s", about, spellAdmissions(got))
		}
	}
}
