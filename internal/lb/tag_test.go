// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"maps"
	"strings"
	"testing"
)

func TestValidTag(t *testing.T) {
	tests := []struct {
		name, value string
		want        bool
	}{
		{"team", "shop", true},
		{"team", "", true},
		{"", "shop", false},
		{"a.b:c d", "<>%&\\?/", true}, // only names have forbidden characters
		{strings.Repeat("ä", 512), strings.Repeat("ß", 256), true},
		{strings.Repeat("n", 513), "", false},
		{"n", strings.Repeat("v", 257), false},
	}
	for _, r := range `<>%&\?/` {
		tests = append(tests, struct {
			name, value string
			want        bool
		}{"a" + string(r), "", false})
	}
	for _, tt := range tests {
		if got := ValidTag(tt.name, tt.value); got != tt.want {
			t.Errorf("%q=%q: %v", tt.name, tt.value, got)
		}
	}
}

// Tag names are case-insensitive.
func TestTagsHaveNoCapitals(t *testing.T) {
	tags := map[string]string{"Team": "a", "cost": "1"}
	SetTags(tags, map[string]string{"team": "b", "new": "c"})
	if want := map[string]string{"Team": "b", "cost": "1", "new": "c"}; !maps.Equal(tags, want) {
		t.Errorf("got %v, want %v", tags, want)
	}
	if got := TagValue(tags, "TEAM"); got != "b" {
		t.Errorf("team is %q", got)
	}
	UnsetTag(tags, "tEAM")
	if want := map[string]string{"cost": "1", "new": "c"}; !maps.Equal(tags, want) || TagValue(tags, "Team") != "" {
		t.Errorf("got %v, want %v", tags, want)
	}
}
