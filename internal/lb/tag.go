// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"strings"
	"unicode/utf8"
)

// MaxTags is the maximum number of tags of an Azure resource.
const MaxTags = 50

// TagRule is Azure's rule for tags, for error messages:
// https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources
const TagRule = `tags with names of 1 to 512 characters without <, >, %, &, \, ? and /, and values of at most 256`

// ValidTag reports whether Azure accepts a tag. It cannot detect names that differ only in case.
func ValidTag(name, value string) bool {
	return name != "" && utf8.RuneCountInString(name) <= 512 && utf8.RuneCountInString(value) <= 256 &&
		!strings.ContainsAny(name, `<>%&\?/`)
}

// SetTags copies more into tags and retains the case of existing names.
func SetTags(tags, more map[string]string) {
	for name, value := range more {
		for key := range tags {
			if strings.EqualFold(key, name) {
				name = key
			}
		}
		tags[name] = value
	}
}

// TagValue returns the value of a tag by case-insensitive name.
func TagValue(tags map[string]string, name string) string {
	for key, value := range tags {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// UnsetTag removes a tag by case-insensitive name.
func UnsetTag(tags map[string]string, name string) {
	for key := range tags {
		if strings.EqualFold(key, name) {
			delete(tags, key)
		}
	}
}
