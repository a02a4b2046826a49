// SPDX-License-Identifier: Apache-2.0

package service

import "strings"

// Unenforced says which restrictions of a Service have no effect, because no security rule
// follows from them, and why; empty if there are none. guarded is true if there is a security
// group for the rules. Whoever restricts a Service takes it for restricted.
func (s Service) Unenforced(guarded bool) string {
	r := &reader{annotations: s.Annotations}
	limits := s.limits()
	alone := r.yes(DenyAllExcept)
	all := limits
	if alone {
		all = append(all, DenyAllExcept)
	}
	switch {
	case len(all) == 0:
		return ""
	case !guarded:
		return withoutEffect(all, "azure.json names no securityGroupName, and no security rule is made")
	case r.yes(DisableSecurityRules):
		return withoutEffect(all, DisableSecurityRules+` is "true", and no security rule is made`)
	case len(limits) == 0:
		return withoutEffect(all, "no range and no service tag says who may connect, so everybody may")
	}
	return ""
}

func withoutEffect(fields []string, why string) string {
	return "restrictions without effect: " + strings.Join(fields, ", ") + ": " + why
}

// limits are the fields of a Service that say who may connect. One whose value nobody can read
// says so, too.
func (s Service) limits() []string {
	r := &reader{annotations: s.Annotations}
	var all []string
	ranges := SourceRanges
	if len(s.SourceRanges) > 0 { // it goes before the annotation
		ranges = ""
		all = append(all, "spec.loadBalancerSourceRanges")
	}
	for _, name := range []string{ranges, AllowedIPRanges, AllowedServiceTags} {
		text, _ := r.text(name)
		if len(words(text)) > 0 {
			all = append(all, name)
		}
	}
	return all
}
