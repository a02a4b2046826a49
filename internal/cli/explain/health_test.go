// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// Azure's health is a column of the members; without the right it is one line, and everything else remains.
func TestHealthOfMembers(t *testing.T) {
	newStory := func() Explanation {
		return Explanation{Pools: []Pool{{Name: "web", Members: []Member{{Node: "n1", Address: "10.0.0.1", State: InPool}, {Node: "n2", Address: "10.0.0.2", State: InPool}, {Node: "n3", State: LeftOut}}}}}
	}
	show := func(s Explanation) string {
		var b strings.Builder
		if err := s.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	before, after, _ := strings.Cut(show(newStory()), "\nWhat happened")
	for name, tt := range map[string]struct {
		texts map[string]string
		err   error
		want  []string
	}{
		"reported": {texts: map[string]string{"10.0.0.1": "up (Up_Probe_Success)", "10.0.0.2": "down: the probe gets another status than 200"}, want: []string{
			"AZURE'S PROBE", "n1     10.0.0.1   InPool    up (Up_Probe_Success)", "n2     10.0.0.2   InPool    down: the probe gets another status than 200", "n3     -          LeftOut   -",
		}},
		"no right": {err: errors.New("no\nright"), want: []string{before + "\nAzure's probes: no right\n\nWhat happened" + after}},
	} {
		s := newStory()
		Reader{Health: func(context.Context, string, string) (map[string]string, error) {
			return tt.texts, tt.err
		}}.addHealth(t.Context(), &s)
		for _, want := range tt.want {
			if got := show(s); !strings.Contains(got, want) {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
			}
		}
	}
}

func TestHealthReadsAreBounded(t *testing.T) {
	reads := 0
	s := Explanation{Pools: make([]Pool, maxHealthPools+5)}
	Reader{Health: func(context.Context, string, string) (map[string]string, error) { reads++; return nil, nil }}.addHealth(t.Context(), &s)
	if reads != maxHealthPools || s.HealthError == "" {
		t.Errorf("%d reads, %q", reads, s.HealthError)
	}
}
