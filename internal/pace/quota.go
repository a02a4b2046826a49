// SPDX-License-Identifier: Apache-2.0

package pace

import "time"

// What Azure takes of writes, all documented. Microsoft.Network counts writes and deletes of a
// subscription and tells nobody how many are left, so Weir counts its own. Resource Manager
// fills a bucket for each caller, and one for all callers of the subscription which is fifteen
// times as large, and tells what is left of either beside each answer.
const (
	windowLasts  = 5 * time.Minute
	windowWrites = 1000

	bucketSize   = 200
	bucketRefill = 10 // a second
	allCallers   = 15
)

// bucketLasts is how long an empty bucket takes to be full.
const bucketLasts = bucketSize / bucketRefill * time.Second

// slotLasts is how exactly the window counts: a write is forgotten up to that much late.
const slotLasts = 5 * time.Second

// slots are those of one window, and the one that has begun.
const slots = int64(windowLasts/slotLasts) + 1

// window counts the writes of the last windowLasts. The zero value has counted none.
type window struct {
	counts [slots]float64
	newest int64 // the number of the newest slot, since 1970
}

func slotOf(t time.Time) int64 { return t.UnixNano() / int64(slotLasts) }

// forget drops what is older than a window. A clock that was a window ahead has counted nothing that
// can be believed.
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

// count adds writes, or a part of one.
func (w *window) count(now time.Time, writes float64) {
	w.forget(now)
	w.counts[w.newest%slots] += writes
}

// spent returns how many are counted.
func (w *window) spent(now time.Time) float64 {
	w.forget(now)
	n := 0.0
	for _, c := range w.counts {
		n += c
	}
	return n
}

// free returns how many writes of a share may be spent now, if besides so many a second follow:
// at no time from now on are more than the share counted. It is below zero where those that
// follow exceed the share by themselves.
func (w *window) free(now time.Time, share, owed float64) float64 {
	counted := w.spent(now)
	free := share - owed*windowLasts.Seconds() // when all that is counted now has left
	for n := w.newest - slots + 1; n <= w.newest; n++ {
		if n < 0 || w.counts[n%slots] == 0 {
			continue
		}
		leaves := time.Unix(0, (n+slots)*int64(slotLasts)).Sub(now) // until then this slot's are counted
		counting := min(leaves, windowLasts).Seconds()
		free = min(free, share-counted-owed*counting)
		counted -= w.counts[n%slots]
	}
	return free
}

// below returns when at most so many writes are counted, if none is added.
func (w *window) below(most float64, now time.Time) time.Time {
	counted := w.spent(now)
	at := now
	for n := max(0, w.newest-slots+1); counted > most && n <= w.newest; n++ {
		if counts := w.counts[n%slots]; counts > 0 {
			counted -= counts
			at = time.Unix(0, (n+slots)*int64(slotLasts))
		}
	}
	return at
}

// bucket is what is known of one of Resource Manager's buckets.
type bucket struct {
	size   float64
	refill float64 // a second
	left   float64
	at     time.Time // when so much was left; zero if nothing is known
}

// leftAt returns what is left, if nobody has spent any since but by spend.
func (b *bucket) leftAt(now time.Time) float64 {
	return min(b.size, b.left+max(0, now.Sub(b.at).Seconds())*b.refill)
}

// spend takes one.
func (b *bucket) spend(now time.Time) {
	b.left, b.at = max(0, b.leftAt(now)-1), now
}
