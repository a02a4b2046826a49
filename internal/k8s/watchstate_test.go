// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Scripts of watch events of nodes and slices, in seconds, and when the cache may be stale.
func TestStaleCaches(t *testing.T) {
	const begins, ends = true, false
	type step struct {
		at   float64
		kind string
		want bool
	}
	both := func(at float64, ok bool) []step { return []step{{at, "nodes", ok}, {at, "slices", ok}} }
	for _, tt := range []struct {
		name  string
		steps []step
		stale map[float64]bool
	}{
		{"nothing was watched yet", nil, map[float64]bool{0: false, 1000: false}},
		{"all is well", both(0, begins), map[float64]bool{0: false, 1000: false}},
		{"a watch is made anew, as usual", append(both(0, begins), step{300, "nodes", ends}, step{300.9, "nodes", begins}), map[float64]bool{300.5: false, 301.5: false, 310: false}},
		{"it is made anew before the old one ends", append(both(0, begins), step{300, "nodes", begins}, step{300.9, "nodes", ends}), map[float64]bool{300.5: false, 303: false}},
		{"8 s away", append(append(both(0, begins), both(100, ends)...), both(108, begins)...), map[float64]bool{100.5: false, 101: true, 107: true, 109.9: true, 110: false, 200: false}},
		{"one kind is back later", append(append(both(0, begins), both(100, ends)...), step{108, "nodes", begins}, step{138, "slices", begins}), map[float64]bool{107: true, 120: true, 139.9: true, 140: false}},
		{"nobody asked meanwhile", append(append(both(0, begins), both(100, ends)...), both(140, begins)...), map[float64]bool{141: true, 142: false}},
		{"a watch that was back breaks again: it was too old", append(both(0, begins), step{100, "nodes", ends}, step{108, "nodes", begins}, step{108.1, "nodes", ends}, step{115, "nodes", begins}), map[float64]bool{108: true, 112: true, 116.9: true, 117: false}},
		{"it never comes back", append(both(0, begins), step{100, "nodes", ends}), map[float64]bool{101: true, 219: true, 220: false, 5000: false}},
		{"it comes and goes for too long", append(both(0, begins), step{100, "nodes", ends}, step{150, "nodes", begins}, step{151, "nodes", ends}, step{200, "nodes", begins}, step{201, "nodes", ends}), map[float64]bool{219: true, 221: false}},
		{"after that it is in sync, and breaks anew", append(both(0, begins), step{100, "nodes", ends}, step{300, "nodes", begins}, step{400, "nodes", ends}), map[float64]bool{250: false, 301: false, 303: false, 401: true, 519: true, 520: false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := func(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * float64(time.Second))) }
			for when, want := range tt.stale { // with separate Watches, to show that Stale has no effect on the result
				var w Watches
				for _, s := range tt.steps {
					if s.at > when {
						break
					}
					if s.want {
						w.RecordOpen(s.kind, at(s.at))
					} else {
						w.RecordClose(s.kind, at(s.at))
					}
				}
				if got := w.IsStale(at(when)); got != want {
					t.Errorf("at %v s: %v, want %v", when, got, want)
				}
			}
		})
	}
}

// Whatever watches do: never stale for longer than StaleWatchTimeout between times in sync, never while
// all have been open for a while, and until then always while one has been closed for a second.
func TestLawOfWatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Watches
		kinds := []string{"a", "b", "c"}
		now, open, changed := time.Unix(0, 0), map[string]bool{}, map[string]time.Time{}
		for _, k := range kinds {
			w.RecordOpen(k, now)
			open[k], changed[k] = true, now
		}
		var since time.Time
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
			if isQuiet(open, changed, now) {
				since = time.Time{}
			}
			k := rapid.SampledFrom(kinds).Draw(t, "kind")
			if rapid.Bool().Draw(t, "changes") {
				if open[k] {
					w.RecordClose(k, now)
				} else {
					w.RecordOpen(k, now)
				}
				open[k], changed[k] = !open[k], now
			}
			quiet, lost := isQuiet(open, changed, now), false
			for _, k := range kinds {
				lost = lost || !open[k] && now.Sub(changed[k]) >= time.Second
			}
			stale := w.IsStale(now)
			state := fmt.Sprint(open, changed, now)
			switch {
			case stale && quiet:
				t.Fatalf("stale, though all watches are there: %s", state)
			case stale && since.IsZero():
				since = now
			case stale && now.Sub(since) >= StaleWatchTimeout:
				t.Fatalf("stale for too long: %s", state)
			case !stale && lost && since.IsZero() && now.Sub(time.Unix(0, 0)) < StaleWatchTimeout:
				t.Fatalf("not stale, though a watch is away: %s", state)
			}
		}
	})
}

// isQuiet reports whether all watches have been open for a while.
func isQuiet(open map[string]bool, changed map[string]time.Time, now time.Time) bool {
	for k, at := range changed {
		if !open[k] || now.Sub(at) < 2*time.Second {
			return false
		}
	}
	return true
}
