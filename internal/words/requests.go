// SPDX-License-Identifier: Apache-2.0

package words

import (
	"regexp"
	"strings"

	"weir.dev/weir/internal/fault"
)

// Requested appends Azure's request ID from err, in at most limit bytes; text is truncated instead
// of the ID.
func Requested(text string, err error, limit int) string {
	id := request(err)
	if id == "" {
		return text
	}
	return strings.TrimRight(Sentence(text, limit-len(id)), ". ") + id
}

func request(err error) string {
	if id, _ := fault.RequestOf(err); id != "" && !strings.Contains(err.Error(), id) {
		return " (request id " + id + ")"
	}
	return ""
}

// named matches request and operation IDs, and timestamps, also truncated. Other IDs
// (subscriptions, identities) distinguish errors.
var named = []*regexp.Regexp{
	regexp.MustCompile(` ?\(request id [0-9A-Za-z_.-]+(?:\)|…)`),
	regexp.MustCompile(`(?i)((?:request|correlation|tracking|trace|activity|operation)[a-z_-]*(?:\s+with)?[\s_-]{0,3}(?:ids?|identifier)?[\s:=/"'(\[\\]{0,6}(?:is[\s:"']{1,3})?)(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f-]{1,36}…)`),
	regexp.MustCompile(`(?i)(timestamp[\s:=/"'(\[\\]{0,6})[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{5,18}Z?`),
}

// changing matches times of the next attempt and requested delays.
var changing = []*regexp.Regexp{
	regexp.MustCompile(`(follows|tries again) at [0-9-]{10}T[0-9:.]{8,18}Z`),
	regexp.MustCompile(`(?i)((?:retry|try again|wait)[^.0-9]{0,20})[0-9]{1,6}(\W{0,2}s(?:econds?)?\b)`),
}

// OfAnyTry removes all that differs between attempts, so that repeated events are counted.
func OfAnyTry(text string) string {
	text = unnamed(text)
	for _, pattern := range changing {
		text = pattern.ReplaceAllString(text, "$1$2")
	}
	return text
}

// Same reports whether two messages differ only in request IDs and timestamps.
func Same(a, b string) bool { return a == b || unnamed(a) == unnamed(b) }

func unnamed(text string) string {
	for _, pattern := range named {
		text = pattern.ReplaceAllString(text, "$1")
	}
	return text
}
