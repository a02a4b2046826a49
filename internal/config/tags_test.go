// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestResourceTags(t *testing.T) {
	for given, want := range map[string]string{
		"":                               "",
		"tags: ' a = b , cost=,, x=y=z'": "a=b cost= x=y=z",
		"tagsMap: {a: 'b,c', d: null}":   "a=b,c d=",
		// Tag names are case-insensitive in Azure: they must not occur twice.
		"tags: Team=shop,a=b\ntagsMap: {team: Web}": "a=b team=Web",
	} {
		c, err := loadWith(t, given)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(c.ResourceTags())) {
			got = append(got, name+"="+c.ResourceTags()[name])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// The caller may modify the returned map.
func TestResourceTagsAreTheCallers(t *testing.T) {
	for _, given := range []string{"", "tags: a=b", "tagsMap: {a: b}"} {
		c, err := loadWith(t, given)
		if err != nil {
			t.Fatal(err)
		}
		c.ResourceTags()["mine"] = "x"
		if _, ok := c.ResourceTags()["mine"]; ok {
			t.Errorf("%q: all callers share one map", given)
		}
	}
}

func TestInvalidTags(t *testing.T) {
	many := func(n int) string {
		var tags []string
		for i := range n {
			tags = append(tags, fmt.Sprintf("t%d=v", i))
		}
		return strings.Join(tags, ",")
	}
	for given, wantText := range map[string]string{
		"tags: a=b,team":                          `key "tags" has "team": want pairs like "a=b,c=d"`,
		"tags: '=b'":                              `key "tags" has "=b"`,
		"tags: a=b,a=c":                           `key "tags" has the tag "a" twice`,
		"tags: a=b,A=c":                           `key "tags" has the tags "A" and "a", which are one to Azure`,
		"tagsMap: {a: b, A: c}":                   `key "tagsMap" has the tags "A" and "a", which are one to Azure`,
		"tags: a/b=c":                             `key "tags" has "a/b=c": want tags with names`,
		"tags: a=" + strings.Repeat("v", 257):     "values of at most 256",
		"tagsMap: {'a?': b}":                      `key "tagsMap" has "a?=b": want tags with names`,
		"tagsMap: {'': b}":                        `key "tagsMap" has "=b"`,
		"tags: " + many(48):                       `have 48 tags: want at most 47: Azure allows 50, and Weir adds 3`,
		"tags: " + many(47) + "\ntagsMap: {x: v}": `have 48 tags`,
	} {
		if _, err := loadWith(t, given); err == nil || !strings.Contains(err.Error(), wantText) {
			t.Errorf("%.60q: got %v, want %s", given, err, wantText)
		}
	}
	if _, err := loadWith(t, "tags: "+many(47)+"\ntagsMap: {T1: v}"); err != nil {
		t.Error(err)
	}
}
