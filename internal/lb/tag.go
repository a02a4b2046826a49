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
