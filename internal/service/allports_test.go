// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"testing"
)

// Without floating IP an all-ports rule would include all ports of the nodes, so no Service opens or closes
// them.
func TestNoServiceGetsAllPortsOfNodes(t *testing.T) {
	direct, ports := withAnnotation(DisableFloatingIP, "true"), withAnnotation(HAPorts, "true")
	for about, s := range map[string]Service{
		"opened": newService(asInternal, direct, ports, withRanges("0.0.0.0/0")),
		"closed": newService(asInternal, direct, ports, withRanges("192.0.2.0/24"), withAnnotation(DenyAllExcept, "true")),
		"by tag": newService(asInternal, direct, ports, withAnnotation(AllowedServiceTags, "Internet")),
	} {
		w, problems := BuildSpec(s, testSettings())
		if len(problems) != 1 || problems[0].Field != HAPorts {
			t.Errorf("%s: %v", about, problems)
		}
		if got := w.AccessRules([]netip.Addr{front4}, []netip.Addr{node4}); len(got) > 0 {
			t.Errorf("%s:\n%s", about, formatAccessRules(got))
		}
	}
	for about, s := range map[string]Service{
		"nobody is named": newService(asInternal, direct, ports),
		"no rules":        newService(asInternal, direct, ports, withRanges("0.0.0.0/0"), withAnnotation(DisableSecurityRules, "true")),
	} {
		if got := buildValidSpec(t, s, testSettings()).AccessRules([]netip.Addr{front4}, []netip.Addr{node4}); len(got) > 0 {
			t.Errorf("%s:\n%s", about, formatAccessRules(got))
		}
	}
}
