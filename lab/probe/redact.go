// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"regexp"
	"strings"
)

// redactedMark replaces redacted text.
const redactedMark = "REDACTED"

var (
	guidPattern  = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b`)
	emailPattern = regexp.MustCompile(`[0-9A-Za-z._%+#-]+@[0-9A-Za-z.-]+\.[A-Za-z]{2,}`)
	// Messages name the rejected client before the missing permission.
	clientPattern = regexp.MustCompile(`(?i)(client|object id|applicationId|principal) '[^']*'`)
	subscription  = regexp.MustCompile(`(?i)(subscriptions/)[^/'"\s]+`)
)

// Redact removes IDs of subscriptions, tenants, callers and requests, and secrets.
func Redact(text string, secrets ...string) string {
	text = subscription.ReplaceAllString(text, "${1}"+redactedMark)
	text = clientPattern.ReplaceAllString(text, "${1} '"+redactedMark+"'")
	text = guidPattern.ReplaceAllString(text, redactedMark)
	text = emailPattern.ReplaceAllString(text, redactedMark)
	for _, secret := range secrets {
		text = redactFold(text, secret)
	}
	return text
}

func redactFold(text, secret string) string {
	if len(secret) < 3 {
		return text
	}
	return regexp.MustCompile("(?i)"+regexp.QuoteMeta(secret)).ReplaceAllLiteralString(text, redactedMark)
}

func singleLine(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
