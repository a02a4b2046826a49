// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Ignored are the keys of a file that have no effect, sorted.
type Ignored struct {
	// NotYet are keys of the Azure cloud provider that Weir does not support yet.
	NotYet []string
	// Unknown are all others that look like keys: a misspelling, most likely.
	Unknown []string
	// Odd counts those that do not. One may be a secret that lost its place.
	Odd int
}

// keysNamed is how many unknown keys a warning names.
const keysNamed = 20

// Warning is one line that names the keys; empty if there are none.
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

// ownName matches what a key of azure.json looks like. The application secrets that Azure makes
// have digits.
var ownName = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

// notShown stands for a name that may be a secret.
const notShown = "…"

// shown returns the path of a key, as far as its parts look like keys.
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

// deepest is how many parts the path of a key has at most:
// multipleStandardLoadBalancerConfigurations[0].nodeSelector.matchLabels.KEY.
const deepest = 4
