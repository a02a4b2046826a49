// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"strings"
	"unicode/utf8"
)

// MostTags is how many tags Azure lets a resource have.
const MostTags = 50

// TagRule is Azure's rule for tags in the words of an error:
// https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources
const TagRule = `tags with names of 1 to 512 characters without <, >, %, &, \, ? and /, and values of at most 256`

// ValidTag reports whether Azure takes a tag. It compares the names of tags without
// regard to case, which is for the caller to mind.
func ValidTag(name, value string) bool {
	return name != "" && utf8.RuneCountInString(name) <= 512 && utf8.RuneCountInString(value) <= 256 &&
		!strings.ContainsAny(name, `<>%&\?/`)
}

// SetTags puts more tags into a map. A name that is there with other capitals is the same
// name to Azure, and keeps its spelling.
func SetTags(tags, more map[string]string) {
	for name, value := range more {
		for there := range tags {
			if strings.EqualFold(there, name) {
				name = there
			}
		}
		tags[name] = value
	}
}

// Tag returns the value of a tag, whatever the capitals of its name.
func Tag(tags map[string]string, name string) string {
	for there, value := range tags {
		if strings.EqualFold(there, name) {
			return value
		}
	}
	return ""
}

// UnsetTag removes a tag, whatever the capitals of its name.
func UnsetTag(tags map[string]string, name string) {
	for there := range tags {
		if strings.EqualFold(there, name) {
			delete(tags, there)
		}
	}
}
