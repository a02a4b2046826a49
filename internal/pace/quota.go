// SPDX-License-Identifier: Apache-2.0

package pace

import "time"

// Azure's documented limits. Microsoft.Network limits writes and deletes per subscription and does
// not report what is left. Resource Manager has a token bucket per caller, and one per subscription
// for all callers, and reports both.
const (
	windowLasts  = 5 * time.Minute
	windowWrites = 1000

	bucketSize   = 200
	bucketRefill = 10 // per second
	allCallers   = 15
)

const bucketLasts = bucketSize / bucketRefill * time.Second

// slotLasts is the resolution of window.
const slotLasts = 5 * time.Second

const slots = int64(windowLasts/slotLasts) + 1

// window counts the writes of the last five minutes. The zero value is empty.
type window struct {
	counts [slots]float64
	newest int64 // index of the newest slot since 1970
}

func slotOf(t time.Time) int64 { return t.UnixNano() / int64(slotLasts) }

// forget drops expired slots, and all if the clock was ahead by a window.
func (w *window) forget(now time.Time) {
	at := slotOf(now)
	if at-w.newest >= slots || w.newest-at >= slots {
		w.newest = min(w.newest, at)
		w.counts = [slots]float64{}
	}
	for n := max(w.newest+1, at-slots+1); n <= at; n++ {
		w.counts[n%slots] = 0
	}
	w.newest = max(w.newest, at)
}

func (w *window) add(now time.Time) { w.count(now, 1) }

func (w *window) count(now time.Time, writes float64) {
	w.forget(now)
	w.counts[w.newest%slots] += writes
}

func (w *window) spent(now time.Time) float64 {
	w.forget(now)
	n := 0.0
	for _, c := range w.counts {
		n += c
	}
	return n
}

// free returns how many writes may be spent now without ever exceeding share if owed more per
// second follow; negative if those alone exceed it.
func (w *window) free(now time.Time, share, owed float64) float64 {
	counted := w.spent(now)
	free := share - owed*windowLasts.Seconds() // once everything counted now has expired
	for n := w.newest - slots + 1; n <= w.newest; n++ {
		if n < 0 || w.counts[n%slots] == 0 {
			continue
		}
		expires := time.Unix(0, (n+slots)*int64(slotLasts)).Sub(now) // when this slot expires
		counting := min(expires, windowLasts).Seconds()
		free = min(free, share-counted-owed*counting)
		counted -= w.counts[n%slots]
	}
	return free
}

// below returns when the count falls to limit without further writes.
func (w *window) below(limit float64, now time.Time) time.Time {
	counted := w.spent(now)
	at := now
	for n := max(0, w.newest-slots+1); counted > limit && n <= w.newest; n++ {
		if counts := w.counts[n%slots]; counts > 0 {
			counted -= counts
			at = time.Unix(0, (n+slots)*int64(slotLasts))
		}
	}
	return at
}

type bucket struct {
	size   float64
	refill float64 // per second
	left   float64
	at     time.Time // when left was current; zero if unknown
}

// leftAt assumes that no other client took tokens.
func (b *bucket) leftAt(now time.Time) float64 {
	return min(b.size, b.left+max(0, now.Sub(b.at).Seconds())*b.refill)
}

func (b *bucket) spend(now time.Time) {
	b.left, b.at = max(0, b.leftAt(now)-1), now
}
