// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// MaxLineLength limits a line, in runes. An event note holds 1,024 characters, and the error is part of
// it.
const MaxLineLength = 400

var dashPattern = regexp.MustCompile(`-{5,}`)

// Line makes text safe for events and logs: redacted, on one line, printable, at most [MaxLineLength]
// runes.
func Line(text string) string {
	text = Text(strings.Map(func(r rune) rune { // before Text: such characters could hide a secret
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text))
	// The SDK separates sections with rows of dashes.
	runes := []rune(strings.Join(strings.Fields(dashPattern.ReplaceAllString(text, " ")), " "))
	if len(runes) > MaxLineLength {
		return string(runes[:MaxLineLength-1]) + "…"
	}
	return string(runes)
}
