// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"maps"
	"time"

	"weir.dev/weir/internal/lb"
)

// gain is how fast busy pools spend what is free, relative to lasting for a window. With gain g
// they end up with g/(1+g) of it: more wastes less, but leaves less to others.
const gain = 9

// Budget is what remains of a subscription's writes. Not safe for concurrent use.
type Budget struct {
	share    float64
	interval time.Duration

	window window
	// Weir's part of the caller's bucket by its own count, and both buckets as reported by Azure.
	own, caller, all bucket
	pools            map[lb.PoolKey]activity
	// faded is when inactive pools were last dropped.
	faded    time.Time
	tenants  map[string]*tenant
	reserved float64
	// dropped is the slot in which idle namespaces were last dropped.
	dropped int64
	// seen are the last two namespaces with a Service or a pool, newest first.
	seen [2]sighting
}

// NewBudget returns an unused Budget. Weir may spend share, from 0 to 1, and no pool waits longer
// than interval.
func NewBudget(share float64, interval time.Duration) *Budget {
	share, interval = min(max(share, 0), 1), max(interval, time.Millisecond)
	return &Budget{
		share: share, interval: interval, pools: map[lb.PoolKey]activity{}, tenants: map[string]*tenant{},
		own:    bucket{size: share * bucketSize, refill: share * bucketRefill, left: share * bucketSize},
		caller: bucket{size: bucketSize, refill: share * bucketRefill},
		all:    bucket{size: bucketSize * allCallers, refill: share * bucketRefill * allCallers},
	}
}

// Left is what Azure reports of Resource Manager's write buckets; negative if absent.
type Left struct{ Caller, All int }

// Wrote counts a write or deletion that is being sent.
func (b *Budget) Wrote(now time.Time) {
	b.window.add(now)
	b.own.spend(now)
	for _, reported := range []*bucket{&b.caller, &b.all} {
		if !reported.at.IsZero() {
			reported.spend(now)
		}
	}
}

// Told records what Azure reports as left.
func (b *Budget) Told(left Left, now time.Time) {
	for _, reported := range []struct {
		left int
		of   *bucket
	}{{left.Caller, &b.caller}, {left.All, &b.all}} {
		if reported.left >= 0 {
			reported.of.left, reported.of.at = float64(reported.left), now
			reported.of.size = max(reported.of.size, reported.of.left)
		}
	}
}

// Changed counts a change of a namespace's pool.
func (b *Budget) Changed(pool lb.PoolKey, namespace string, now time.Time) {
	b.fade(now)
	b.tenant(namespace).wait(now)
	a := b.pools[pool].changed(now, b.interval)
	a.namespace = namespace
	b.pools[pool] = a
}

// Forget drops a pool.
func (b *Budget) Forget(pool lb.PoolKey) { delete(b.pools, pool) }

// fade drops inactive pools once per interval.
func (b *Budget) fade(now time.Time) {
	if now.Sub(b.faded) > b.interval {
		maps.DeleteFunc(b.pools, func(_ lb.PoolKey, a activity) bool { return a.when(now, b.interval).often < faint })
		b.faded = now
	}
}

// Pace is how pools divide the remaining writes.
type Pace struct {
	budget *Budget
	now    time.Time
	// spare is writes per second beyond one per interval, for each unit of namespace weight.
	spare float64
	// Factors from pool to namespace weights, and limits of early writes per second and unit of
	// weight by the namespace's share.
	parts, most map[string]float64
}

// At returns the current pace, in O(active pools).
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
	// A namespace weighs as much as its busiest pool.
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

// spare returns the writes per second for pools that were written within the interval. owed is
// reserved for others.
func (b *Budget) spare(now time.Time, owed float64) float64 {
	part := func(free float64, lasts time.Duration) float64 {
		if free < 1 {
			return 0
		}
		return gain * free / lasts.Seconds()
	}
	spare := part(b.window.free(now, b.share*windowWrites, owed), windowLasts)
	spare = min(spare, part(b.own.leftAt(now), bucketLasts))
	for _, reported := range []*bucket{&b.caller, &b.all} {
		if !reported.at.IsZero() {
			spare = min(spare, part(b.share*reported.leftAt(now), bucketLasts))
		}
	}
	return spare
}

// Spacing is when a busy pool is written.
type Spacing struct {
	// Average times between its writes, and between its changes.
	apart, every time.Duration
}

// Hold returns how long the first waiting change waits, counted from its arrival: the time of the
// changes expected between two writes, less those waiting. A fixed time after the last write would
// batch fewer of them, because random changes are only predictable by how many wait.
func (s Spacing) Hold(changes int) time.Duration {
	return max(0, s.apart-time.Duration(changes)*s.every)
}

// Spacing returns a pool's schedule: at most the interval apart, and exactly that once nothing is
// left.
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

// part converts a pool's weight; 1 before a namespace's first change.
func (p Pace) part(namespace string) float64 {
	if part, known := p.parts[namespace]; known {
		return part
	}
	return 1
}

// Spent returns the writes of the last five minutes, Weir's share in five minutes, and what is left
// of it.
func (b *Budget) Spent(now time.Time) (spent, share, left float64) {
	spent, share = b.window.spent(now), b.share*windowWrites
	left = min(share-spent, b.own.leftAt(now))
	for _, reported := range []*bucket{&b.caller, &b.all} {
		if !reported.at.IsZero() {
			left = min(left, b.share*reported.leftAt(now))
		}
	}
	return spent, share, max(0, left)
}
