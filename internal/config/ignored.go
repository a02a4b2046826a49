// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Ignored are the keys without effect, sorted.
type Ignored struct {
	// Unsupported are keys of cloud-provider-azure that Weir does not support yet.
	Unsupported []string
	// Unknown are other valid names: probably misspellings.
	Unknown []string
	// Unprintable counts names that do not look like keys. One may be a misplaced secret, so they are not printed.
	Unprintable int
	// Different are the keys that are set and mean something else in cloud-provider-azure, with the difference.
	Different []string
}

// differences are the keys that mean something else in cloud-provider-azure. The reference page explains them.
var differences = []struct{ key, text string }{
	{"loadBalancerSku", "Weir only makes Standard load balancers, also without the key, and makes existing Basic ones Standard where it is set (loadBalancerMigration)"},
	{"tags", "it applies to what Weir creates; existing resources retain their tags"},
	{"tagsMap", "it applies to what Weir creates; existing resources retain their tags"},
	{"loadBalancerBackendPoolUpdateIntervalInSeconds", "it is the longest wait of a pool; Weir writes a changed pool at once where the write quota allows"},
}

func differencesOf(keys map[string]json.RawMessage) []string {
	var names []string
	for _, d := range differences {
		for key, value := range keys {
			if strings.EqualFold(key, d.key) && !isEmpty(value) {
				names = append(names, d.key+": "+d.text)
			}
		}
	}
	return names
}

// DifferenceText names the keys that mean something else in cloud-provider-azure, in one line; "" if there are none.
func (i Ignored) DifferenceText() string {
	if len(i.Different) == 0 {
		return ""
	}
	return "keys of azure.json that cloud-provider-azure understands differently: " + strings.Join(i.Different, "; ")
}

const maxNamedKeys = 20

// WarningText names the keys in one line; "" if there are none.
func (i Ignored) WarningText() string {
	var parts []string
	if len(i.Unsupported) > 0 {
		parts = append(parts, "not supported yet: "+strings.Join(i.Unsupported, ", "))
	}
	if len(i.Unknown) > 0 {
		var quoted []string
		for _, key := range i.Unknown[:min(len(i.Unknown), maxNamedKeys)] {
			quoted = append(quoted, fmt.Sprintf("%q", key))
		}
		text := "unknown: " + strings.Join(quoted, ", ")
		if n := len(i.Unknown) - maxNamedKeys; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		parts = append(parts, text)
	}
	if i.Unprintable > 0 {
		parts = append(parts, fmt.Sprintf("%d whose names are not shown, because they do not look like keys: check the quotes and colons around them", i.Unprintable))
	}
	if len(parts) == 0 {
		return ""
	}
	return "keys of azure.json without effect: " + strings.Join(parts, "; ")
}

// keyPattern matches names that look like keys. Azure's generated secrets contain digits.
var keyPattern = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

const hiddenName = "…"

func visiblePath(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		name, index, listed := strings.Cut(part, "[")
		if i == maxPathParts || !keyPattern.MatchString(name) || listed && strings.Trim(index, "0123456789") != "]" {
			return strings.Join(append(parts[:i], hiddenName), ".")
		}
	}
	return path
}

// maxPathParts is the number of parts of the longest path:
// multipleStandardLoadBalancerConfigurations[0].nodeSelector.matchLabels.KEY.
const maxPathParts = 4
