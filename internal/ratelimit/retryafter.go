// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter caps a server's Retry-After. No Azure limit takes longer to reset.
const MaxRetryAfter = 24 * time.Hour

// retryAfterHeaders are in order of precedence: finer units first, as in azcore.
var retryAfterHeaders = []struct {
	name string
	unit time.Duration
	date bool
}{
	{"Retry-After-Ms", time.Millisecond, false},
	{"X-Ms-Retry-After-Ms", time.Millisecond, false},
	{"Retry-After", time.Second, true},
}

// RetryAfter returns the time before which the server must not be called again, and whether the
// headers specify one. Negative and invalid values are ignored, a date in the past is now, and
// delays are capped at MaxRetryAfter.
func RetryAfter(h interface{ Get(name string) string }, now time.Time) (time.Time, bool) {
	for _, header := range retryAfterHeaders {
		value := strings.TrimSpace(h.Get(header.name))
		if value == "" {
			continue
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			if n < 0 {
				continue
			}
			return now.Add(min(time.Duration(min(n, int64(MaxRetryAfter/header.unit)))*header.unit, MaxRetryAfter)), true
		}
		if header.date {
			if at, ok := parseDate(value); ok {
				return limitTime(at, now, now.Add(MaxRetryAfter)), true
			}
		}
	}
	return time.Time{}, false
}

// dateFormats are those of RFC 9110; RFC 1123 accepts any zone name.
var dateFormats = []string{time.RFC1123, time.RFC850, time.ANSIC}

// parseDate parses an HTTP date as UTC, whatever zone it names. Plain time.Parse would honor the
// abbreviation of the machine's local zone.
func parseDate(value string) (time.Time, bool) {
	for _, layout := range dateFormats {
		if at, err := time.ParseInLocation(layout, value, time.UTC); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

func limitTime(t, lo, hi time.Time) time.Time {
	if t.Before(lo) {
		return lo
	}
	if t.After(hi) {
		return hi
	}
	return t
}
