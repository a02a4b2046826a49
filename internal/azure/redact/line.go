// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// Longest bounds a line, in runes: an event note has room for 1,024, and it
// says more than the error.
const Longest = 400

var rulePattern = regexp.MustCompile(`-{5,}`)

// Line makes a text fit for an event or a log line: no secrets, no line breaks,
// nothing that a terminal acts upon, and not endless.
func Line(text string) string {
	text = Text(strings.Map(func(r rune) rune { // first, or they hide a secret's form
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text))
	// The SDK's dumps are ruled with dashes.
	runes := []rune(strings.Join(strings.Fields(rulePattern.ReplaceAllString(text, " ")), " "))
	if len(runes) > Longest {
		return string(runes[:Longest-1]) + "…"
	}
	return string(runes)
}
