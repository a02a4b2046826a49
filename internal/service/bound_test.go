// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOf(t *testing.T) {
	azure, file := NamespaceCapacity{Max: 1500}, NamespaceCapacity{Max: 250, By: "maximumLoadBalancerRuleCount in azure.json"}
	for _, tt := range []struct {
		about, value string
		capacity     NamespaceCapacity
		shared       bool
		want         int
		by           string
	}{
		{"alone", "", azure, false, 1350, "default: 150 are reserved for other namespaces, of 1500, the limit of Azure"},
		{"shared", "", azure, true, 750, "default: other namespaces use it, too, so half of 1500, the limit of Azure"},
		{"shared, limit in azure.json", "", file, true, 125, "half of 250, maximumLoadBalancerRuleCount in azure.json"},
		{"alone, limit in azure.json", "", file, false, 225, "maximumLoadBalancerRuleCount in azure.json"},
		{"annotation", "100", azure, true, 100, "annotation weir.dev/max-rules of Namespace team"},
		{"annotation, alone", "100", azure, false, 100, "annotation"},
		{"annotation of 0", "0", azure, true, 0, "annotation"},
		{"annotation above the capacity", "9999", azure, true, 1500, "annotation"},
		{"negative", "-1", azure, true, 750, `weir.dev/max-rules of Namespace team is "-1"`},
		{"with a unit", "100 rules", azure, true, 750, `is "100 rules"`},
		{"empty", "", azure, true, 750, "default"},
		{"too large", "99999999999999999999", azure, true, 750, `is "99999999999999999999"`},
		{"very small capacity", "", NamespaceCapacity{Max: 1}, true, 1, "default"},
		{"very small capacity, alone", "", NamespaceCapacity{Max: 1}, false, 1, "default: 1, the limit of Azure"},
		{"small capacity, alone", "", NamespaceCapacity{Max: 2}, false, 1, "default: 1 is reserved for other namespaces, of 2"},
		{"Private Link Services, alone", "", NamespaceCapacity{Max: 8}, false, 7, "default: 1 is reserved for other namespaces, of 8"},
	} {
		annotations := map[string]string{}
		if tt.value != "" || tt.about == "empty" {
			annotations[MaxRules] = tt.value
		}
		b := ParseNamespaceSettings("team", annotations).NamespaceBound(MaxRules, tt.capacity, tt.shared)
		if b.Max != tt.want || !strings.Contains(b.By, tt.by) {
			t.Errorf("%s: %d by %q, want %d by %q", tt.about, b.Max, b.By, tt.want, tt.by)
		}
	}
}

func TestProblems(t *testing.T) {
	s := ParseNamespaceSettings("team", map[string]string{MaxRules: "x", MaxFrontends: "12", MaxSecurityRules: strings.Repeat("9", 100)})
	got := s.InvalidMessages()
	if len(got) != 2 || !strings.HasPrefix(got[0], `Namespace team: annotation weir.dev/max-rules is "x": set a whole number`) || len(got[1]) > 250 {
		t.Errorf("%q", got)
	}
	if n := s.NamespaceBound(MaxFrontends, NamespaceCapacity{Max: 600}, true).Max; n != 12 {
		t.Errorf("another annotation with an error changes max-frontends to %d", n)
	}
}

func TestPart(t *testing.T) {
	rules, addresses := NamespaceCapacity{Max: 1000}, NamespaceCapacity{Max: 4000}
	for value, want := range map[string]int{"": 2000, "10": 2000, "500": 2000, "750": 3000, "1000": 4000, "9999": 4000, "x": 2000} {
		if b := ParseNamespaceSettings("team", map[string]string{MaxSecurityRules: value}).ShareOf(MaxSecurityRules, rules, addresses, true); b.Max != want {
			t.Errorf("%q: %d, want %d", value, b.Max, want)
		}
	}
}

// An invalid bound is never looser than the default, truncated or not.
func TestLawAnInvalidValueSetsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9]{1,60}`)).Draw(t, "value")
		shared := rapid.Bool().Draw(t, "shared")
		none, c := NamespaceSettings{Namespace: "n"}, NamespaceCapacity{Max: 1000}
		whole := ParseNamespaceSettings("n", map[string]string{MaxRules: value})
		cut := ParseNamespaceSettings("n", map[string]string{MaxRules: TruncateValue(value)})
		if len(whole.InvalidMessages()) > 0 && whole.NamespaceBound(MaxRules, c, shared).Max != none.NamespaceBound(MaxRules, c, shared).Max {
			t.Fatalf("%q: %v", value, whole.NamespaceBound(MaxRules, c, shared))
		}
		if len(value) > maxValue && len(cut.InvalidMessages()) == 0 {
			t.Fatalf("%q is valid once it is cut", value)
		}
	})
}

func TestExceeded(t *testing.T) {
	err := NewBoundExceededError("team", 1496, "rules", "load balancer kubernetes", NamespaceBound{750, "default"}, MaxRules)
	if !errors.Is(err, ErrBoundExceeded) {
		t.Error(err)
	}
	for _, want := range []string{"namespace team", "1496 rules", "load balancer kubernetes", "750 (default)", MaxRules + " on Namespace team"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
}
