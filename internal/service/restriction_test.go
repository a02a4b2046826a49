// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Property: an invalid Service has the restriction of the corresponding valid one.
func TestLawTheRestrictionOfAnInvalidService(t *testing.T) {
	values := map[string][]string{
		AllowedIPRanges: {"", "192.0.2.0/24", "192.0.2.0/24,198.51.100.7/24", "?"}, AllowedServiceTags: {"", "AzureCloud", "AzureCloud,*"},
		SourceRanges: {"", "203.0.113.0/24", "0.0.0.0/0"}, DenyAllExcept: {"", "true", "perhaps"}, DisableSecurityRules: {"", "true", "perhaps"},
		Internal: {"", "true", "false"},
	}
	rapid.Check(t, func(t *rapid.T) {
		valid, invalid := newService(), newService()
		for name, candidates := range values {
			value := rapid.SampledFrom(candidates).Draw(t, name)
			valid.Annotations[name], invalid.Annotations[name] = value, value
		}
		if rapid.Bool().Draw(t, "spec.loadBalancerSourceRanges") {
			withRanges("10.0.0.0/8", "10.0.0.1")(&valid)
			withRanges("10.0.0.0/8", "10.0.0.1")(&invalid)
		}
		invalid.Annotations[IdleTimeout], invalid.Annotations[ProbeProtocol] = "never", "smtp"
		if _, problems := BuildSpec(invalid, testSettings()); len(problems) == 0 {
			t.Fatal("it is valid")
		}
		want, got := desiredOf(t, valid), RestrictionOf(invalid)
		if restriction := want.Restriction(); !reflect.DeepEqual(got.Access, restriction.Access) || got.Internal != restriction.Internal || !reflect.DeepEqual(got.Flaws, want.Flaws) {
			t.Fatalf("%v %v: %+v, want %+v", invalid.Annotations, invalid.SourceRanges, got, restriction)
		}
	})
}

func desiredOf(t *rapid.T, s Service) Spec {
	w, problems := BuildSpec(s, testSettings())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return w
}

// IsWithin is conservative: false if uncertain.
func TestRestrictionsWithinOthers(t *testing.T) {
	of := func(edits ...func(*Service)) Restriction { return RestrictionOf(newService(edits...)) }
	open, some, fewer := of(), of(withRanges("10.0.0.0/8")), of(withRanges("10.1.0.0/16"))
	inside, perhaps := of(asInternal), of(withAnnotation(Internal, "perhaps"))
	for about, tt := range map[string]struct {
		want, other Restriction
		within      bool
	}{
		"fewer": {fewer, some, true}, "more": {some, fewer, false}, "the same": {some, of(withRanges("10.0.0.0/8")), true}, "some, and all": {some, open, true}, "all, and some": {open, some, false},
		"all, and internal": {open, inside, false}, "internal, and all": {inside, open, false}, "internal, twice": {inside, of(asInternal), true}, "some, and some internal": {some, of(asInternal, withRanges("10.0.0.0/8")), false},
		"without rules": {of(withAnnotation(DisableSecurityRules, "true")), some, false}, "nobody": {of(withRanges("wrong")), fewer, true}, "some, and nobody": {fewer, of(withRanges("wrong")), false},
	} {
		if got := tt.want.IsWithin(tt.other); got != tt.within {
			t.Errorf("%s: %t", about, got)
		}
	}
	if !open.IsOpen() || some.IsOpen() || inside.IsOpen() || !perhaps.Internal || !of(withRanges("10.0.0.0/8"), withAnnotation(DisableSecurityRules, "true")).IsOpen() {
		t.Errorf("open: %+v, %+v, %+v, %+v", open, some, inside, perhaps)
	}
}

// A Service that becomes internal admits only private networks, and its denials do not depend on the admitted
// clients.
func TestTheLimitOfAService(t *testing.T) {
	w := buildValidSpec(t, newService(asInternal), testSettings())
	if l := w.ClientLimit([]netip.Addr{front4}, nil); !l.Private || len(l.Own) != 1 || len(w.DenyRules([]netip.Addr{front4}, nil)) != 0 {
		t.Errorf("%+v", l)
	}
	w = buildValidSpec(t, newService(withRanges("192.0.2.0/24"), withAnnotation(AllowedServiceTags, "AzureCloud"), withAnnotation(DenyAllExcept, "true")), testSettings())
	l, rules := w.ClientLimit([]netip.Addr{front4}, nil), formatAccessRules(w.AccessRules([]netip.Addr{front4}, nil))
	if denials := formatAccessRules(w.DenyRules([]netip.Addr{front4}, nil)); l.Private || len(l.Ranges) != 1 || len(l.Tags) != 1 || denials == "" || !strings.HasSuffix(rules, denials) || strings.Contains(denials, "Allow") {
		t.Errorf("%+v, denials\n%s\nof\n%s", l, denials, rules)
	}
}
