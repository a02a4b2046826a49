// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"maps"
	"time"

	"weir.dev/weir/internal/lb"
)

// spendFactor is how fast busy pools spend what is free, relative to lasting for a window. With gain g
// they end up with g/(1+g) of it: more wastes less, but leaves less to others.
const spendFactor = 9

// Budget is what remains of a subscription's writes. Not safe for concurrent use.
type Budget struct {
	interval time.Duration
	fleet    fleetShare

	window window
	// Weir's part of the caller's bucket by its own count, and both buckets as reported by Azure.
	ownBucket, callerBucket, subscriptionBucket bucket
	// The latter two as if Weir were alone, and the last reports.
	aloneCaller, aloneSubscription bucket
	reports                        [2]BucketState
	pools                          map[lb.PoolKey]changeRate
	// prunedAt is when inactive pools were last dropped.
	prunedAt   time.Time
	namespaces map[string]*namespaceUsage
	reserved   float64
	// prunedSlot is the slot in which idle namespaces were last dropped.
	prunedSlot int64
	// lastSeen are the last two namespaces with a Service or a pool, newest first.
	lastSeen [2]namespaceSeen
}

// NewBudget returns an unused Budget. Weir may spend at most share, from 0 to 1, and no pool waits longer than interval
// unless the share is lowered.
func NewBudget(share float64, interval time.Duration) *Budget {
	share, interval = min(max(share, 0), 1), max(interval, time.Millisecond)
	return &Budget{
		fleet: fleetShare{configured: share, current: share}, interval: interval, pools: map[lb.PoolKey]changeRate{}, namespaces: map[string]*namespaceUsage{},
		ownBucket:          bucket{size: share * bucketSize, perSecond: share * refillPerSecond, tokens: share * bucketSize},
		callerBucket:       bucket{size: bucketSize, perSecond: share * refillPerSecond},
		subscriptionBucket: bucket{size: bucketSize * subscriptionFactor, perSecond: share * refillPerSecond * subscriptionFactor},
		aloneCaller:        bucket{size: bucketSize, perSecond: refillPerSecond},
		aloneSubscription:  bucket{size: bucketSize * subscriptionFactor, perSecond: refillPerSecond * subscriptionFactor},
	}
}

// Remaining is what Azure reports of Resource Manager's write buckets; negative if absent.
type Remaining struct{ Caller, Subscription int }

// CountWrite counts a write or deletion that is being sent.
func (b *Budget) CountWrite(now time.Time) {
	b.window.addWrite(now)
	b.fleet.raise(b.window.countWrites(now), now)
	b.ownBucket.takeToken(now)
	for _, reported := range []*bucket{&b.callerBucket, &b.subscriptionBucket, &b.aloneCaller, &b.aloneSubscription} {
		if !reported.at.IsZero() {
			reported.takeToken(now)
		}
	}
}

// SetRemaining records what Azure reports as left.
func (b *Budget) SetRemaining(remaining Remaining, now time.Time) {
	for i, reported := range []struct {
		left      int
		name      string
		of, alone *bucket
	}{{remaining.Caller, "caller", &b.callerBucket, &b.aloneCaller}, {remaining.Subscription, "subscription", &b.subscriptionBucket, &b.aloneSubscription}} {
		if reported.left >= 0 {
			reported.of.tokens, reported.of.at = float64(reported.left), now
			reported.of.size = max(reported.of.size, reported.of.tokens)
			b.reports[i] = b.recordBucket(reported.name, reported.of, reported.alone, now)
		}
	}
}

// CountChange counts a change of a namespace's pool.
func (b *Budget) CountChange(pool lb.PoolKey, namespace string, now time.Time) {
	b.pruneInactive(now)
	b.usageOf(namespace).markWaiting(now)
	a := b.pools[pool].addChange(now, b.interval)
	a.namespace = namespace
	b.pools[pool] = a
}

// RemovePool drops a pool.
func (b *Budget) RemovePool(pool lb.PoolKey) { delete(b.pools, pool) }

// pruneInactive drops inactive pools once per interval.
func (b *Budget) pruneInactive(now time.Time) {
	if now.Sub(b.prunedAt) > b.interval {
		maps.DeleteFunc(b.pools, func(_ lb.PoolKey, a changeRate) bool { return a.decayTo(now, b.interval).windowCount < minActive })
		b.prunedAt = now
	}
}

// Pace is how pools divide the remaining writes.
type Pace struct {
	budget *Budget
	now    time.Time
	// rate is writes per second beyond one per interval, for each unit of namespace weight.
	rate float64
	// Factors from pool to namespace weights, and limits of early writes per second and unit of
	// weight by the namespace's share.
	poolWeights, maxRates map[string]float64
	// longest is how long a busy pool waits at most.
	longest time.Duration
}

// PaceAt returns the current pace, in O(active pools).
func (b *Budget) PaceAt(now time.Time) Pace {
	p := Pace{budget: b, now: now}
	b.pruneInactive(now)
	b.fleet.raise(b.window.countWrites(now), now)
	weights := 0.0
	type sum struct{ heaviest, total, reservedRate float64 }
	namespaces := map[string]sum{}
	for _, a := range b.pools {
		a = a.decayTo(now, b.interval)
		of := namespaces[a.namespace]
		of.reservedRate += a.reservedRate(b.interval)
		if a.recentCount >= minActive {
			weights += a.shareWeight()
			of.heaviest, of.total = max(of.heaviest, a.shareWeight()), of.total+a.shareWeight()
		}
		namespaces[a.namespace] = of
	}
	// A namespace weighs as much as its busiest pool.
	total, reservedRate, waitingRate := 0.0, 0.0, 0.0
	p.poolWeights, p.maxRates = make(map[string]float64, len(namespaces)), map[string]float64{}
	for name, of := range namespaces {
		free, remaining, bounded := b.freePoolWrites(name, of.reservedRate, now)
		if bounded {
			of.reservedRate = min(of.reservedRate, remaining/windowLength.Seconds())
		}
		reservedRate += of.reservedRate
		waitingRate += b.limitWaitingRate(name, of.reservedRate, now)
		if of.total == 0 {
			continue
		}
		total += of.heaviest
		p.poolWeights[name] = of.heaviest / of.total
		if bounded {
			p.maxRates[name] = spendFactor * max(free, 0) / windowLength.Seconds() / of.total
		}
	}
	p.longest = b.longestWait(waitingRate)
	if p.longest > b.interval {
		reservedRate *= float64(b.interval) / float64(p.longest)
	}
	if p.rate = b.availableRate(now, reservedRate); weights > 0 {
		p.rate *= min(weights, 1) / total
	}
	return p
}

// availableRate returns the writes per second for busy pools. reservedRate is reserved for the other pools.
func (b *Budget) availableRate(now time.Time, reservedRate float64) float64 {
	if b.fleet.closedUntil.After(now) {
		return 0
	}
	part := func(free float64, lasts time.Duration) float64 {
		if free < 1 {
			return 0
		}
		return spendFactor * free / lasts.Seconds()
	}
	spare := part(b.window.freeWrites(now, b.fleet.current*windowWrites, reservedRate), windowLength)
	spare = min(spare, part(b.ownBucket.tokensAt(now), bucketFillTime))
	for _, reported := range []*bucket{&b.callerBucket, &b.subscriptionBucket} {
		if !reported.at.IsZero() {
			spare = min(spare, part(b.fleet.current*reported.tokensAt(now), bucketFillTime))
		}
	}
	return spare
}

// Schedule is when a busy pool is written.
type Schedule struct {
	// Average times between its writes, and between its changes.
	writeInterval, changeInterval time.Duration
	// lastInterval is the latter at the last change.
	lastInterval time.Duration
	// Longest is how long it waits at most after its last write: an interval, or longer while the share is lowered.
	Longest time.Duration
	// NotBefore is when a used-up quota is available again.
	NotBefore time.Time
}

// HoldFor returns how long the first waiting change waits, counted from its arrival: the time of the
// changes expected between two writes, less those waiting. A fixed time after the last write would
// batch fewer of them, because random changes are only predictable by how many wait.
func (s Schedule) HoldFor(changes int) time.Duration {
	return max(0, s.writeInterval-time.Duration(changes)*s.changeInterval)
}

// gatherTime is how long a change may wait for others. With a write of two seconds and as much behind another, it is
// in force within six.
const gatherTime = 2 * time.Second

// GatherFor returns how long the first waiting change of a busy pool waits for further ones even if the quota
// allows a write: writes count, too. If none is expected in time, it does not wait. It is not for changes by which
// flows are lost during the wait.
func (s Schedule) GatherFor() time.Duration {
	if s.lastInterval > gatherTime {
		return 0
	}
	return gatherTime
}

// ScheduleFor returns a pool's schedule. Two writes are at most Pace.longest apart: an interval, or up to MaxStretch
// intervals while the share is lowered.
func (p Pace) ScheduleFor(pool lb.PoolKey) Schedule {
	b := p.budget
	last := b.pools[pool].changeInterval(b.interval)
	s := Schedule{writeInterval: p.longest, lastInterval: last, Longest: p.longest, NotBefore: b.fleet.closedUntil}
	if p.rate <= 0 {
		return s
	}
	a := b.pools[pool].decayTo(p.now, b.interval)
	early := p.rate * p.weightOf(a.namespace)
	if maxRate, bounded := p.maxRates[a.namespace]; bounded {
		early = min(early, maxRate)
	}
	rate := 1/p.longest.Seconds() + early*a.shareWeight()
	s.writeInterval, s.changeInterval = min(p.longest, time.Duration(float64(time.Second)/rate)), a.changeInterval(b.interval)
	return s
}

// weightOf converts a pool's weight; 1 before a namespace's first change.
func (p Pace) weightOf(namespace string) float64 {
	if part, known := p.poolWeights[namespace]; known {
		return part
	}
	return 1
}

// UsageAt returns the writes of the last five minutes, Weir's share in five minutes, and what is left
// of it.
func (b *Budget) UsageAt(now time.Time) (spent, share, remaining float64) {
	b.fleet.raise(b.window.countWrites(now), now)
	spent, share = b.window.countWrites(now), b.fleet.current*windowWrites
	remaining = min(share-spent, b.ownBucket.tokensAt(now))
	for _, reported := range []*bucket{&b.callerBucket, &b.subscriptionBucket} {
		if !reported.at.IsZero() {
			remaining = min(remaining, b.fleet.current*reported.tokensAt(now))
		}
	}
	return spent, share, max(0, remaining)
}
