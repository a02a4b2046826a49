// SPDX-License-Identifier: Apache-2.0

// Package words formats text from any source for users: bounded, on one line, without control
// characters.
package words

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir.dev/weir/internal/fault"
)

// Limits in bytes. Kubernetes truncates or rejects longer events.
const (
	MaxMessage = 1024
	MaxCode    = 128
)

// Sentence formats text for an event or a condition: one line, no control characters, at most limit
// bytes.
func Sentence(text string, limit int) string {
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

// OfFault formats an Azure error in at most limit bytes, always with the code.
func OfFault(f *fault.Fault, limit int) string {
	if f == nil {
		return "no reason was given"
	}
	id := request(f)
	limit -= len(id)
	text := strings.TrimRight(Sentence(f.Error(), limit), ". ")
	code := Sentence(f.Code, MaxCode)
	if code != "" && !strings.Contains(text, code) {
		text = Sentence(code+": "+text, limit)
	}
	return text + id
}

// Count formats a number of things with the plural.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		return fmt.Sprintf("%d %ses", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// List joins names up to the limit and counts the others.
func List(names []string, limit int) string {
	text := strings.Join(names[:min(len(names), limit)], ", ")
	if n := len(names) - limit; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Stamp formats a future time.
func Stamp(t time.Time) string { return WholeSecond(t).UTC().Format(time.RFC3339) }

// WholeSecond rounds up, so that readers of a status are never early.
func WholeSecond(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

// OfError formats an error with Azure's code and the time of the next attempt, if known.
func OfError(err error, now time.Time) string {
	id := request(err)
	text := strings.TrimRight(Sentence(err.Error(), MaxMessage-200-len(id)), ". ")
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return text
	}
	if code := Sentence(f.Code, MaxCode); code != "" && !strings.Contains(text, code) {
		text = code + ": " + text
	}
	text += id
	if f.RetryAt.After(now) {
		text += "; another try follows at " + Stamp(f.RetryAt)
	}
	return text
}
