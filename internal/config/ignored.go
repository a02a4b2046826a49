// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Ignored are the keys without effect, sorted.
type Ignored struct {
	// NotYet are keys of cloud-provider-azure that Weir does not support yet.
	NotYet []string
	// Unknown are other valid names: probably misspellings.
	Unknown []string
	// Odd counts names that do not look like keys. One may be a misplaced secret, so they are not printed.
	Odd int
}

const keysNamed = 20

// Warning names the keys in one line; "" if there are none.
func (i Ignored) Warning() string {
	var parts []string
	if len(i.NotYet) > 0 {
		parts = append(parts, "not supported yet: "+strings.Join(i.NotYet, ", "))
	}
	if len(i.Unknown) > 0 {
		var quoted []string
		for _, key := range i.Unknown[:min(len(i.Unknown), keysNamed)] {
			quoted = append(quoted, fmt.Sprintf("%q", key))
		}
		text := "unknown: " + strings.Join(quoted, ", ")
		if n := len(i.Unknown) - keysNamed; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		parts = append(parts, text)
	}
	if i.Odd > 0 {
		parts = append(parts, fmt.Sprintf("%d whose names are not shown, because they do not look like keys: check the quotes and colons around them", i.Odd))
	}
	if len(parts) == 0 {
		return ""
	}
	return "keys of azure.json without effect: " + strings.Join(parts, "; ")
}

// ownName matches names that look like keys. Azure's generated secrets contain digits.
var ownName = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

const notShown = "…"

func shown(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		name, index, listed := strings.Cut(part, "[")
		if i == deepest || !ownName.MatchString(name) || listed && strings.Trim(index, "0123456789") != "]" {
			return strings.Join(append(parts[:i], notShown), ".")
		}
	}
	return path
}

// deepest is the number of parts of the longest path:
// multipleStandardLoadBalancerConfigurations[0].nodeSelector.matchLabels.KEY.
const deepest = 4
