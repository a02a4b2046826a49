// SPDX-License-Identifier: Apache-2.0

package balancer

import "strings"

// Azure compares names without capitals.

func equalFold(a, b string) bool { return strings.EqualFold(a, b) }

func containsFold(list []string, name string) bool {
	for _, item := range list {
		if strings.EqualFold(item, name) {
			return true
		}
	}
	return false
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
