// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"regexp"
	"strings"
)

// taken replaces redacted text.
const taken = "REDACTED"

var (
	guidPattern  = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b`)
	emailPattern = regexp.MustCompile(`[0-9A-Za-z._%+#-]+@[0-9A-Za-z.-]+\.[A-Za-z]{2,}`)
	// Messages name the rejected client before the missing permission.
	clientPattern = regexp.MustCompile(`(?i)(client|object id|applicationId|principal) '[^']*'`)
	subscription  = regexp.MustCompile(`(?i)(subscriptions/)[^/'"\s]+`)
)

// Redact removes IDs of subscriptions, tenants, callers and requests, and secrets.
func Redact(text string, secrets ...string) string {
	text = subscription.ReplaceAllString(text, "${1}"+taken)
	text = clientPattern.ReplaceAllString(text, "${1} '"+taken+"'")
	text = guidPattern.ReplaceAllString(text, taken)
	text = emailPattern.ReplaceAllString(text, taken)
	for _, secret := range secrets {
		text = withoutFold(text, secret)
	}
	return text
}

func withoutFold(text, secret string) string {
	if len(secret) < 3 {
		return text
	}
	return regexp.MustCompile("(?i)"+regexp.QuoteMeta(secret)).ReplaceAllLiteralString(text, taken)
}

func line(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
