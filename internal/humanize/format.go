// SPDX-License-Identifier: Apache-2.0

// Package humanize formats text from any source for users: bounded, on one line, without control
// characters.
package humanize

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir.dev/weir/internal/armerror"
)

// Limits in bytes. Kubernetes truncates or rejects longer events.
const (
	MaxMessage = 1024
	MaxCode    = 128
)

// FormatMessage formats text for an event or a condition: one line, no control characters, at most limit
// bytes.
func FormatMessage(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	const more = "…"
	cut := limit - len(more)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}

// FormatFault formats an Azure error in at most limit bytes, always with the code of Azure.
func FormatFault(f *armerror.Fault, limit int) string {
	if f == nil {
		return "no reason was given"
	}
	id := requestIDSuffix(f)
	limit -= len(id)
	text := strings.TrimRight(FormatMessage(f.Error(), limit), ". ")
	code := FormatMessage(f.Code, MaxCode)
	if code != "" && code != armerror.CodeUnclassified && !strings.Contains(text, code) {
		text = FormatMessage(code+": "+text, limit)
	}
	return text + id
}

// FormatCount formats a number of things with the plural.
func FormatCount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FormatList joins names up to the limit and counts the others.
func FormatList(names []string, limit int) string {
	text := strings.Join(names[:min(len(names), limit)], ", ")
	if n := len(names) - limit; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// FormatTime formats a future time.
func FormatTime(t time.Time) string { return RoundUpSecond(t).UTC().Format(time.RFC3339) }

// RoundUpSecond rounds up, so that readers of a status are never early.
func RoundUpSecond(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

// FormatError formats an error with Azure's code and the time of the next attempt, if known.
func FormatError(err error, now time.Time) string {
	id := requestIDSuffix(err)
	text := strings.TrimRight(FormatMessage(err.Error(), MaxMessage-200-len(id)), ". ")
	f, ok := errors.AsType[*armerror.Fault](err)
	if !ok {
		return text
	}
	if code := FormatMessage(f.Code, MaxCode); code != "" && code != armerror.CodeUnclassified && !strings.Contains(text, code) {
		text = code + ": " + text
	}
	text += id
	if f.RetryAt.After(now) {
		text += "; another try follows at " + FormatTime(f.RetryAt)
	}
	return text
}
