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
		valid, invalid := web(), web()
		for name, all := range values {
			value := rapid.SampledFrom(all).Draw(t, name)
			valid.Annotations[name], invalid.Annotations[name] = value, value
		}
		if rapid.Bool().Draw(t, "spec.loadBalancerSourceRanges") {
			ranges("10.0.0.0/8", "10.0.0.1")(&valid)
			ranges("10.0.0.0/8", "10.0.0.1")(&invalid)
		}
		invalid.Annotations[IdleTimeout], invalid.Annotations[ProbeProtocol] = "never", "smtp"
		if _, problems := Desired(invalid, settings()); len(problems) == 0 {
			t.Fatal("it is valid")
		}
		want, got := desiredOf(t, valid), RestrictionOf(invalid)
		if is := want.Restriction(); !reflect.DeepEqual(got.Access, is.Access) || got.Internal != is.Internal || !reflect.DeepEqual(got.Flaws, want.Flaws) {
			t.Fatalf("%v %v: %+v, want %+v", invalid.Annotations, invalid.SourceRanges, got, is)
		}
	})
}

func desiredOf(t *rapid.T, s Service) Spec {
	w, problems := Desired(s, settings())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return w
}

// IsWithin is conservative: false if uncertain.
func TestRestrictionsWithinOthers(t *testing.T) {
	of := func(edits ...func(*Service)) Restriction { return RestrictionOf(web(edits...)) }
	open, some, fewer := of(), of(ranges("10.0.0.0/8")), of(ranges("10.1.0.0/16"))
	inside, perhaps := of(internal), of(with(Internal, "perhaps"))
	for about, tt := range map[string]struct {
		is, other Restriction
		within    bool
	}{
		"fewer": {fewer, some, true}, "more": {some, fewer, false}, "the same": {some, of(ranges("10.0.0.0/8")), true}, "some, and all": {some, open, true}, "all, and some": {open, some, false},
		"all, and internal": {open, inside, false}, "internal, and all": {inside, open, false}, "internal, twice": {inside, of(internal), true}, "some, and some internal": {some, of(internal, ranges("10.0.0.0/8")), false},
		"without rules": {of(with(DisableSecurityRules, "true")), some, false}, "nobody": {of(ranges("wrong")), fewer, true}, "some, and nobody": {fewer, of(ranges("wrong")), false},
	} {
		if got := tt.is.IsWithin(tt.other); got != tt.within {
			t.Errorf("%s: %t", about, got)
		}
	}
	if !open.IsOpen() || some.IsOpen() || inside.IsOpen() || !perhaps.Internal || !of(ranges("10.0.0.0/8"), with(DisableSecurityRules, "true")).IsOpen() {
		t.Errorf("open: %+v, %+v, %+v, %+v", open, some, inside, perhaps)
	}
}

// A Service that becomes internal admits only private networks, and its denials do not depend on the admitted
// clients.
func TestTheLimitOfAService(t *testing.T) {
	w := desired(t, web(internal), settings())
	if l := w.Limit([]netip.Addr{front4}, nil); !l.Private || len(l.Own) != 1 || len(w.Denials([]netip.Addr{front4}, nil)) != 0 {
		t.Errorf("%+v", l)
	}
	w = desired(t, web(ranges("192.0.2.0/24"), with(AllowedServiceTags, "AzureCloud"), with(DenyAllExcept, "true")), settings())
	l, all := w.Limit([]netip.Addr{front4}, nil), spellAdmissions(w.Admissions([]netip.Addr{front4}, nil))
	if denials := spellAdmissions(w.Denials([]netip.Addr{front4}, nil)); l.Private || len(l.Ranges) != 1 || len(l.Tags) != 1 || denials == "" || !strings.HasSuffix(all, denials) || strings.Contains(denials, "Allow") {
		t.Errorf("%+v, denials\n%s\nof\n%s", l, denials, all)
	}
}
