// SPDX-License-Identifier: Apache-2.0

package ratelimit

import "time"

// Azure's documented limits. Microsoft.Network limits writes and deletes per subscription and does
// not report what is left. Resource Manager has a token bucket per caller, and one per subscription
// for all callers, and reports both.
const (
	windowLength = 5 * time.Minute
	windowWrites = 1000

	bucketSize         = 200
	refillPerSecond    = 10
	subscriptionFactor = 15
)

const bucketFillTime = bucketSize / refillPerSecond * time.Second

// slotLength is the resolution of window.
const slotLength = 5 * time.Second

const slotCount = int64(windowLength/slotLength) + 1

// window counts the writes of the last five minutes. The zero value is empty.
type window struct {
	counts   [slotCount]float64
	lastSlot int64 // index of the newest slot since 1970
}

func slotIndex(t time.Time) int64 { return t.UnixNano() / int64(slotLength) }

// removeExpired drops expired slots, and all if the clock was ahead by a window.
func (w *window) removeExpired(now time.Time) {
	at := slotIndex(now)
	if at-w.lastSlot >= slotCount || w.lastSlot-at >= slotCount {
		w.lastSlot = min(w.lastSlot, at)
		w.counts = [slotCount]float64{}
	}
	for n := max(w.lastSlot+1, at-slotCount+1); n <= at; n++ {
		w.counts[n%slotCount] = 0
	}
	w.lastSlot = max(w.lastSlot, at)
}

func (w *window) addWrite(now time.Time) { w.addWrites(now, 1) }

func (w *window) addWrites(now time.Time, writes float64) {
	w.removeExpired(now)
	w.counts[w.lastSlot%slotCount] += writes
}

func (w *window) countWrites(now time.Time) float64 {
	w.removeExpired(now)
	n := 0.0
	for _, c := range w.counts {
		n += c
	}
	return n
}

// freeWrites returns how many writes may be spent now without ever exceeding share if writes at reservedRate
// follow; negative if those alone exceed it.
func (w *window) freeWrites(now time.Time, share, reservedRate float64) float64 {
	counted := w.countWrites(now)
	free := share - reservedRate*windowLength.Seconds() // once everything counted now has expired
	for n := w.lastSlot - slotCount + 1; n <= w.lastSlot; n++ {
		if n < 0 || w.counts[n%slotCount] == 0 {
			continue
		}
		expires := time.Unix(0, (n+slotCount)*int64(slotLength)).Sub(now) // when this slot expires
		counting := min(expires, windowLength).Seconds()
		free = min(free, share-counted-reservedRate*counting)
		counted -= w.counts[n%slotCount]
	}
	return free
}

// timeBelow returns when the count falls to limit without further writes.
func (w *window) timeBelow(limit float64, now time.Time) time.Time {
	counted := w.countWrites(now)
	at := now
	for n := max(0, w.lastSlot-slotCount+1); counted > limit && n <= w.lastSlot; n++ {
		if counts := w.counts[n%slotCount]; counts > 0 {
			counted -= counts
			at = time.Unix(0, (n+slotCount)*int64(slotLength))
		}
	}
	return at
}

type bucket struct {
	size      float64
	perSecond float64
	tokens    float64
	at        time.Time // when tokens was current; zero if unknown
}

// tokensAt assumes that no other client took tokens.
func (b *bucket) tokensAt(now time.Time) float64 {
	return min(b.size, b.tokens+max(0, now.Sub(b.at).Seconds())*b.perSecond)
}

func (b *bucket) takeToken(now time.Time) {
	b.tokens, b.at = max(0, b.tokensAt(now)-1), now
}
