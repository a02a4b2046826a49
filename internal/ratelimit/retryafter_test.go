// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestRetryAfter(t *testing.T) {
	tests := []struct {
		name   string
		header http.Header
		want   time.Duration
		named  bool
	}{
		{"none", http.Header{}, 0, false},
		{"seconds", http.Header{"Retry-After": {"17"}}, 17 * time.Second, true},
		{"spaces around", http.Header{"Retry-After": {" 17 "}}, 17 * time.Second, true},
		{"zero is now", http.Header{"Retry-After": {"0"}}, 0, true},
		{"negative is none", http.Header{"Retry-After": {"-1"}}, 0, false},
		{"words are none", http.Header{"Retry-After": {"soon"}}, 0, false},
		{"fractions are none", http.Header{"Retry-After": {"1.5"}}, 0, false},
		{"a date", http.Header{"Retry-After": {"Sat, 21 Nov 2026 12:02:00 GMT"}}, 2 * time.Minute, true},
		{"a date in the past is now", http.Header{"Retry-After": {"Fri, 20 Nov 2026 12:00:00 GMT"}}, 0, true},
		{"a date in the next century is a day", http.Header{"Retry-After": {"Sun, 21 Nov 2126 12:00:00 GMT"}}, MaxRetryAfter, true},
		{"more than a day is a day", http.Header{"Retry-After": {"86401"}}, MaxRetryAfter, true},
		{"no overflow", http.Header{"Retry-After": {"9223372036854775807"}}, MaxRetryAfter, true},
		{"beyond 64 bits is none", http.Header{"Retry-After": {"9223372036854775808"}}, 0, false},
		{"milliseconds", http.Header{"Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond, true},
		{"Azure's milliseconds", http.Header{"X-Ms-Retry-After-Ms": {"250"}}, 250 * time.Millisecond, true},
		{"the finer unit first", http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"2"}}, 1500 * time.Millisecond, true},
		{"the next one if the finer is broken", http.Header{"Retry-After-Ms": {"-5"}, "Retry-After": {"2"}}, 2 * time.Second, true},
		{"Azure's milliseconds are no date", http.Header{"X-Ms-Retry-After-Ms": {"Sat, 21 Nov 2026 12:02:00 GMT"}}, 0, false},
		{"a date where milliseconds belong gives way", http.Header{"X-Ms-Retry-After-Ms": {"Sat, 21 Nov 2026 12:02:00 GMT"}, "Retry-After": {"2"}}, 2 * time.Second, true},
		{"milliseconds are no date", http.Header{"Retry-After-Ms": {"Sat, 21 Nov 2026 12:02:00 GMT"}}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at, named := RetryAfter(tt.header, now)
			want := time.Time{}
			if tt.named {
				want = now.Add(tt.want)
			}
			if named != tt.named || !at.Equal(want) {
				t.Errorf("got %v %v, want %v %v", at, named, want, tt.named)
			}
		})
	}
}

// A date is in UTC, whatever zone it names, on any machine.
func TestRetryAfterDatesInEveryZone(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	zones := map[string]bool{ // accepted by time.RFC1123
		"GMT": true, "UTC": true, "EST": true, "PDT": true, "CET": true, "IST": true, "JST": true, "XYZ": true,
		"CEST": true, "AKDT": true, "WITA": true, "ChST": true, "MeST": true, "CHADT": true,
		"GMT+0": true, "GMT-1": true, "GMT+2": true, "GMT+12": true, "+00": true, "-05": true, "+03": true,
		"": false, "Z": false, "UT": false, "gmt": false, "est": false, "ABCD": false, "ABCDE": false, "ABCDEF": false,
		"GMT+24": false, "+24": false, "+0300": false, "+": false,
	}
	for _, here := range []*time.Location{time.UTC, time.FixedZone("EST", -5*3600), time.FixedZone("IST", 19800)} {
		time.Local = here
		for zone, taken := range zones {
			for _, date := range []string{"Sat, 21 Nov 2026 13:00:00 " + zone, "Saturday, 21-Nov-26 13:00:00 " + zone} {
				got, named := RetryAfter(http.Header{"Retry-After": {date}}, now)
				if named != taken || taken && !got.Equal(now.Add(time.Hour)) {
					t.Errorf("in %s, %q: got %s %v, want %v and in an hour", here, date, got, named, taken)
				}
			}
		}
	}
}

// Every date that Go parses as RFC 1123 is accepted with the same result.
func checkDate(t interface{ Fatalf(string, ...any) }, value string) {
	at, err := time.ParseInLocation(time.RFC1123, value, time.UTC)
	if got, ok := parseDate(value); err == nil && (!ok || !got.Equal(at)) {
		t.Fatalf("%q is %s by RFC 1123, and read as %s %v", value, at, got, ok)
	}
}

// The result is always between now and a day from now.
func checkBounds(t interface{ Fatalf(string, ...any) }, h http.Header) {
	at, named := RetryAfter(h, now)
	switch {
	case !named && !at.IsZero():
		t.Fatalf("%v: %v though none was named", h, at)
	case named && (at.Before(now) || at.After(now.Add(MaxRetryAfter))):
		t.Fatalf("%v: %v is outside of now and a day from now", h, at)
	}
}

func TestRetryAfterLaw(t *testing.T) {
	value := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }),
		rapid.Map(rapid.Int64Range(-1e11, 1e11), func(s int64) string { return time.Unix(s, 0).UTC().Format(http.TimeFormat) }),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		h := http.Header{}
		for _, header := range retryAfterHeaders {
			if rapid.Bool().Draw(t, header.name) {
				h.Set(header.name, value.Draw(t, "value"))
			}
		}
		checkBounds(t, h)
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "30", "-1", "99999999999999999999", "Sat, 21 Nov 2026 12:02:00 GMT", "Saturday, 21-Nov-26 12:00:00 GMT", "1.5",
		"Sat, 21 Nov 2026 12:02:00 EST", "Sat, 21 Nov 2026 12:02:00 GMT+2", "Sat, 21 Nov 2026 12:02:00 -05", "Sat, 21 Nov 2026 12:02:00 ChST", "Sat Nov 21 12:02:00 2026"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, fine, coarse string) {
		checkBounds(t, http.Header{"Retry-After-Ms": {fine}, "Retry-After": {coarse}})
		checkDate(t, strings.TrimSpace(coarse))
	})
}

func TestDoubling(t *testing.T) {
	d := Exponential{Initial: time.Second, Max: 30 * time.Second}
	for n, want := range map[int]time.Duration{-1: 0, 0: 0, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 6: 30 * time.Second, 1 << 30: 30 * time.Second} {
		if got := d.DelayAfter(n); got != want {
			t.Errorf("after failure %d: %v, want %v", n, got, want)
		}
	}
	if got := (Exponential{Initial: time.Minute, Max: time.Second}).DelayAfter(1); got != time.Second {
		t.Errorf("the cap holds from the first failure on: got %v", got)
	}
}
