// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

const managedTags = 3

// ResourceTags merges Tags and TagsMap into a new map. TagsMap takes precedence; names are case-insensitive.
func (c Cloud) ResourceTags() map[string]string {
	tags, _ := parsePairs(c.Tags) // validated by Normalize
	mapped := map[string]bool{}
	for name := range c.TagsMap {
		mapped[strings.ToLower(name)] = true
	}
	maps.DeleteFunc(tags, func(name, _ string) bool { return mapped[strings.ToLower(name)] })
	maps.Copy(tags, c.TagsMap)
	return tags
}

func (c Cloud) checkTags() error {
	listed, err := parsePairs(c.Tags)
	if err != nil {
		return err
	}
	if err := checkTags("tags", listed); err != nil {
		return err
	}
	if err := checkTags("tagsMap", c.TagsMap); err != nil {
		return err
	}
	if n := len(c.ResourceTags()); n > lb.MaxTags-managedTags {
		return fmt.Errorf(`keys "tags" and "tagsMap" have %d tags: want at most %d: Azure allows %d, and Weir adds %d to a public IP`, n, lb.MaxTags-managedTags, lb.MaxTags, managedTags)
	}
	return nil
}

func checkTags(key string, tags map[string]string) error {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		folded := strings.ToLower(name)
		if other, ok := seen[folded]; ok {
			return fmt.Errorf("key %q has the tags %q and %q, which are one to Azure: remove one", key, other, name)
		}
		seen[folded] = name
		if !lb.ValidTag(name, tags[name]) {
			return fmt.Errorf("key %q has %q: want %s", key, name+"="+tags[name], lb.TagRule)
		}
	}
	return nil
}

func parsePairs(text string) (map[string]string, error) {
	var err error
	tags := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		_, ok := tags[name]
		switch {
		case !found:
			err = fmt.Errorf(`key "tags" has %q: want pairs like "a=b,c=d"; values that hold ',' have a place in tagsMap`, part)
		case ok:
			err = fmt.Errorf(`key "tags" has the tag %q twice: remove one`, name)
		default:
			tags[name] = value
		}
	}
	return tags, err
}
