// SPDX-License-Identifier: Apache-2.0

// Package backoff computes when to try again: Retry-After headers and doubling
// schedules. Time is an argument throughout.
package backoff

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter bounds what a server can ask for. No Azure limit resets more
// slowly than that, and a date in the next century is a server's mistake.
const MaxRetryAfter = 24 * time.Hour

// retryAfterHeaders in the order in which they are believed: the finer unit first,
// which is also azcore's order.
var retryAfterHeaders = []struct {
	name string
	unit time.Duration
	date bool
}{
	{"Retry-After-Ms", time.Millisecond, false},
	{"X-Ms-Retry-After-Ms", time.Millisecond, false},
	{"Retry-After", time.Second, true},
}

// RetryAfter returns the time before which the server does not want to be asked
// again, and whether the headers say so at all. A negative or unparsable value is
// as good as none; a date in the past is now; more than MaxRetryAfter is cut to it.
func RetryAfter(h http.Header, now time.Time) (time.Time, bool) {
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
				return clampTime(at, now, now.Add(MaxRetryAfter)), true
			}
		}
	}
	return time.Time{}, false
}

// dateLayouts are those of RFC 9110. That of RFC 1123 comes with any zone name.
var dateLayouts = []string{time.RFC1123, time.RFC850, time.ANSIC}

// parseDate reads a date of HTTP, which is one in UTC, whatever zone it names: so does Go with
// all zones but that of the machine, which must not decide when Azure is asked again.
func parseDate(value string) (time.Time, bool) {
	for _, layout := range dateLayouts {
		if at, err := time.ParseInLocation(layout, value, time.UTC); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

func clampTime(t, lo, hi time.Time) time.Time {
	if t.Before(lo) {
		return lo
	}
	if t.After(hi) {
		return hi
	}
	return t
}
