// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Restrictions without a security rule are reported with the reason.
func TestRestrictionsWithoutEffect(t *testing.T) {
	only, alone, unruled := withRanges("10.0.0.0/8"), withAnnotation(DenyAllExcept, "True"), withAnnotation(DisableSecurityRules, "true")
	const none, off, nobody = "azure.json names no securityGroupName", DisableSecurityRules + ` is "true"`, "no source range and no service tag restricts it"
	tests := []struct {
		about     string
		service   Service
		unguarded string // fields without a group
		guarded   string // fields with a group
		reason    string
	}{
		{"nothing is restricted", newService(), "", "", ""},
		{"nothing is restricted, nor are there rules", newService(unruled), "", "", ""},
		{"empty values", newService(withAnnotation(AllowedIPRanges, "  "), withAnnotation(AllowedServiceTags, ""), withAnnotation(DenyAllExcept, "false")), "", "", ""},
		{"ranges", newService(only), "spec.loadBalancerSourceRanges", "", ""},
		{"ranges of the annotation", newService(withAnnotation(SourceRanges, "10.0.0.0/8")), SourceRanges, "", ""},
		{"ranges before the annotation", newService(only, withAnnotation(SourceRanges, "10.0.0.0/8")), "spec.loadBalancerSourceRanges", "", ""},
		{"allowed ranges", newService(withAnnotation(AllowedIPRanges, "10.0.0.0/8")), AllowedIPRanges, "", ""},
		{"tags", newService(withAnnotation(AllowedServiceTags, "AzureCloud")), AllowedServiceTags, "", ""},
		{"tags, alone, internal", newService(asInternal, withAnnotation(AllowedServiceTags, "AzureCloud"), alone), AllowedServiceTags + ", " + DenyAllExcept, "", ""},
		{"all others are kept out, and nobody is named", newService(alone), DenyAllExcept, DenyAllExcept, nobody},
		{"rules are turned off", newService(only, unruled, alone), "spec.loadBalancerSourceRanges, " + DenyAllExcept, "spec.loadBalancerSourceRanges, " + DenyAllExcept, off},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			for _, c := range []struct {
				guarded         bool
				fields, message string
			}{{false, tt.unguarded, none}, {true, tt.guarded, tt.reason}} {
				got := tt.service.UnenforcedReason(c.guarded)
				if (got == "") != (c.fields == "") || c.fields != "" && !strings.HasPrefix(got, "restrictions without effect: "+c.fields+": "+c.message) {
					t.Errorf("guarded %t: %q, want %q: %s", c.guarded, got, c.fields, c.message)
				}
			}
		})
	}
}

// With a group, a restriction is without effect exactly if the rules equal those without it.
func TestRestrictionsHaveAnEffectOrAreNamed(t *testing.T) {
	restricting := map[string]string{AllowedIPRanges: "192.0.2.0/24", SourceRanges: "198.51.100.0/24", AllowedServiceTags: "AzureCloud", DenyAllExcept: "true"}
	rapid.Check(t, func(t *rapid.T) {
		open, restricted := newService(), newService()
		for name, value := range map[string]string{DisableSecurityRules: "true", Internal: "true", DisableFloatingIP: "true"} {
			if rapid.Bool().Draw(t, name) {
				withAnnotation(name, value)(&open)
				withAnnotation(name, value)(&restricted)
			}
		}
		for name, value := range restricting {
			if rapid.Bool().Draw(t, name) {
				withAnnotation(name, value)(&restricted)
			}
		}
		if rapid.Bool().Draw(t, "spec.loadBalancerSourceRanges") {
			withRanges("203.0.113.0/24")(&restricted)
		}
		rulesOf := func(s Service) string {
			w, problems := BuildSpec(s, testSettings())
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			return formatAccessRules(w.AccessRules([]netip.Addr{front4}, []netip.Addr{node4}))
		}
		isRestricted := len(restricted.restrictionFields()) > 0 || restricted.Annotations[DenyAllExcept] != ""
		same := rulesOf(open) == rulesOf(restricted)
		if named := restricted.UnenforcedReason(true) != ""; named != (isRestricted && same) {
			t.Fatalf("named %t, restricted %t, without effect %t: %+v", named, isRestricted, same, restricted.Annotations)
		}
	})
}
