// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"maps"
	"time"

	"weir.dev/weir/internal/lb"
)

// gain is how fast pools that change all the time use up what is free: with so many times the
// rate at which it would last for a window. In the end they spend gain/(1+gain) of it, so a
// larger one wastes less, and leaves less to whoever begins to change later.
const gain = 9

// Budget is what one subscription's writes have left. It is not safe for concurrent use.
type Budget struct {
	share    float64
	interval time.Duration

	window window
	// own counts Weir's part of the caller's bucket, whether or not anybody tells what is
	// left; caller and all are what Azure has told.
	own, caller, all bucket
	pools            map[lb.PoolKey]activity
	// faded is when pools that no longer change were last dropped.
	faded time.Time
	// tenants are the namespaces that have Services written, and reserved the sum of their reservations. dropped is
	// the slot in which idle ones were last dropped.
	tenants  map[string]*tenant
	reserved float64
	dropped  int64
	// seen are the two namespaces that had a Service or a pool last, the newer one first.
	seen [2]sighting
}

// NewBudget returns an untouched one, of which Weir may spend a share from 0 to 1. No pool
// waits for more than the interval, which is positive.
func NewBudget(share float64, interval time.Duration) *Budget {
	share, interval = min(max(share, 0), 1), max(interval, time.Millisecond)
	return &Budget{
		share: share, interval: interval, pools: map[lb.PoolKey]activity{}, tenants: map[string]*tenant{},
		own:    bucket{size: share * bucketSize, refill: share * bucketRefill, left: share * bucketSize},
		caller: bucket{size: bucketSize, refill: share * bucketRefill},
		all:    bucket{size: bucketSize * allCallers, refill: share * bucketRefill * allCallers},
	}
}

// Left is what an answer tells of Resource Manager's buckets of writes; a negative number is
// nothing.
type Left struct{ Caller, All int }

// Wrote counts a write or a deletion that leaves.
func (b *Budget) Wrote(now time.Time) {
	b.window.add(now)
	b.own.spend(now)
	for _, told := range []*bucket{&b.caller, &b.all} {
		if !told.at.IsZero() {
			told.spend(now)
		}
	}
}

// Told learns what Azure says is left.
func (b *Budget) Told(left Left, now time.Time) {
	for _, told := range []struct {
		left int
		of   *bucket
	}{{left.Caller, &b.caller}, {left.All, &b.all}} {
		if told.left >= 0 {
			told.of.left, told.of.at = float64(told.left), now
			told.of.size = max(told.of.size, told.of.left)
		}
	}
}

// Changed counts a change of a pool of a namespace.
func (b *Budget) Changed(pool lb.PoolKey, namespace string, now time.Time) {
	b.fade(now)
	b.tenant(namespace).wait(now)
	a := b.pools[pool].changed(now, b.interval)
	a.namespace = namespace
	b.pools[pool] = a
}

// Forget drops a pool: it has no part in what is left any more.
func (b *Budget) Forget(pool lb.PoolKey) { delete(b.pools, pool) }

// fade drops the pools that no longer change, once an interval.
func (b *Budget) fade(now time.Time) {
	if now.Sub(b.faded) > b.interval {
		maps.DeleteFunc(b.pools, func(_ lb.PoolKey, a activity) bool { return a.when(now, b.interval).often < faint })
		b.faded = now
	}
}

// Pace is how pools divide what was left at one time.
type Pace struct {
	budget *Budget
	now    time.Time
	// spare is how many writes a second there are beyond one an interval, for each unit of
	// weight of a namespace.
	spare float64
	// parts are what a unit of weight of a pool is of one of its namespace, and most the highest number of early
	// writes a second for a unit of weight, where the share of the namespace bounds them.
	parts, most map[string]float64
}

// At returns the pace of a moment. It costs as much as there are pools that change.
func (b *Budget) At(now time.Time) Pace {
	p := Pace{budget: b, now: now}
	b.fade(now)
	weights := 0.0
	type sum struct{ most, all, owed float64 }
	namespaces := map[string]sum{}
	for _, a := range b.pools {
		a = a.when(now, b.interval)
		of := namespaces[a.namespace]
		of.owed += a.owed(b.interval)
		if a.lately >= faint {
			weights += a.weight()
			of.most, of.all = max(of.most, a.weight()), of.all+a.weight()
		}
		namespaces[a.namespace] = of
	}
	// A namespace weighs what its busiest pool does, however many it has.
	total, owed := 0.0, 0.0
	p.parts, p.most = make(map[string]float64, len(namespaces)), map[string]float64{}
	for name, of := range namespaces {
		free, left, bounded := b.freeOf(name, of.owed, now)
		if bounded {
			of.owed = min(of.owed, left/windowLasts.Seconds())
		}
		owed += of.owed
		if of.all == 0 {
			continue
		}
		total += of.most
		p.parts[name] = of.most / of.all
		if bounded {
			p.most[name] = gain * max(free, 0) / windowLasts.Seconds() / of.all
		}
	}
	if p.spare = b.spare(now, owed); weights > 0 {
		p.spare *= min(weights, 1) / total
	}
	return p
}

// spare is how many writes a second may go to pools that were written within the interval, if
// so many others are owed. Whichever Azure counts tightest decides.
func (b *Budget) spare(now time.Time, owed float64) float64 {
	part := func(free float64, lasts time.Duration) float64 {
		if free < 1 {
			return 0
		}
		return gain * free / lasts.Seconds()
	}
	spare := part(b.window.free(now, b.share*windowWrites, owed), windowLasts)
	spare = min(spare, part(b.own.leftAt(now), bucketLasts))
	for _, told := range []*bucket{&b.caller, &b.all} {
		if !told.at.IsZero() {
			spare = min(spare, part(b.share*told.leftAt(now), bucketLasts))
		}
	}
	return spare
}

// Spacing is how a pool is to be written that keeps changing.
type Spacing struct {
	// apart is how far apart its writes are on average, and every how far apart its changes.
	apart, every time.Duration
}

// Hold returns how long the first of so many changes that wait waits for others, counted from when it
// came: for as long as the changes that are to be expected between two writes take, less what have come.
// One that waited from the last write on instead would spend as many writes on fewer changes each: of
// changes that come by chance, nobody knows when the next one comes, but how many wait.
func (s Spacing) Hold(changes int) time.Duration {
	return max(0, s.apart-time.Duration(changes)*s.every)
}

// Spacing returns that of a pool: never further apart than the interval, and that far without regard
// to its changes once nothing is left.
func (p Pace) Spacing(pool lb.PoolKey) Spacing {
	b := p.budget
	if p.spare <= 0 {
		return Spacing{apart: b.interval}
	}
	a := b.pools[pool].when(p.now, b.interval)
	early := p.spare * p.part(a.namespace)
	if most, bounded := p.most[a.namespace]; bounded {
		early = min(early, most)
	}
	rate := 1/b.interval.Seconds() + early*a.weight()
	return Spacing{apart: min(b.interval, time.Duration(float64(time.Second)/rate)), every: a.every(b.interval)}
}

// part is that of a pool's weight which counts; 1 for the first change of a namespace.
func (p Pace) part(namespace string) float64 {
	if part, known := p.parts[namespace]; known {
		return part
	}
	return 1
}

// Spent returns how many writes of the last five minutes are counted, Share how many Weir may
// make, and Left how many of these may be made now.
func (b *Budget) Spent(now time.Time) (spent, share, left float64) {
	spent, share = b.window.spent(now), b.share*windowWrites
	left = min(share-spent, b.own.leftAt(now))
	for _, told := range []*bucket{&b.caller, &b.all} {
		if !told.at.IsZero() {
			left = min(left, b.share*told.leftAt(now))
		}
	}
	return spent, share, max(0, left)
}
