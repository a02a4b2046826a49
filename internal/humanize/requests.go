// SPDX-License-Identifier: Apache-2.0

package humanize

import (
	"regexp"
	"strings"

	"weir.dev/weir/internal/armerror"
)

// AppendRequestID appends Azure's request ID from err, in at most limit bytes; text is truncated instead
// of the ID.
func AppendRequestID(text string, err error, limit int) string {
	id := requestIDSuffix(err)
	if id == "" {
		return text
	}
	return strings.TrimRight(FormatMessage(text, limit-len(id)), ". ") + id
}

func requestIDSuffix(err error) string {
	if id, _ := armerror.RequestIDs(err); id != "" && !strings.Contains(err.Error(), id) {
		return " (request id " + id + ")"
	}
	return ""
}

// requestPatterns matches request and operation IDs, etags, local addresses and timestamps, also truncated. Other IDs
// (subscriptions, identities) distinguish errors.
var requestPatterns = []*regexp.Regexp{
	regexp.MustCompile(` ?\(request id [0-9A-Za-z_.-]+(?:\)|…)`),
	regexp.MustCompile(`(?i)((?:request|correlation|tracking|trace|activity|operation)[a-z_-]*(?:\s+with)?[\s_-]{0,3}(?:ids?|identifier)?[\s:=/"'(\[\\]{0,6}(?:is[\s:"']{1,3})?)(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f-]{1,36}…)`),
	regexp.MustCompile(`(?i)(/operation(?:s|results|statuses)/\?)[^\s"'<>]+`), // signed
	regexp.MustCompile(` ?W/\\?"[0-9a-f-]{1,36}(?:\\?")?`),
	regexp.MustCompile(`((?:tcp|udp)[46]? )[0-9A-Za-z.:%\[\]]{1,64}(?:->|…)`),
	regexp.MustCompile(`(?i)(timestamp[\s:=/"'(\[\\]{0,6})(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{5,18}Z?|[0-9]{8}T[0-9]{6}Z)`),
}

// retryPatterns matches times of the next attempt and requested delays.
var retryPatterns = []*regexp.Regexp{
	regexp.MustCompile(`(follows|Weir retries(?: the admin states)?) at [0-9-]{10}T[0-9:.]{8,18}Z(?: or)?`),
	regexp.MustCompile(`(?i)((?:retry|retried|try again|wait)[^.0-9]{0,20})[0-9]{1,6}(\W{0,2}s(?:econds?)?\b)`),
}

// WithoutRetryDetails removes all that differs between attempts, so that repeated events are counted.
func WithoutRetryDetails(text string) string {
	text = stripRequestIDs(text)
	for _, pattern := range retryPatterns {
		text = pattern.ReplaceAllString(text, "$1$2")
	}
	return text
}

// EqualMessages reports whether two messages differ only in request IDs and timestamps.
func EqualMessages(a, b string) bool { return a == b || stripRequestIDs(a) == stripRequestIDs(b) }

func stripRequestIDs(text string) string {
	for _, pattern := range requestPatterns {
		text = pattern.ReplaceAllString(text, "$1")
	}
	return text
}
