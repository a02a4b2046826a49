// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"maps"
	"time"
)

// The share of a subscription's writes adapts to other clients, which Weir does not know: it rises slowly, and a
// used-up quota lowers it to a part of what Weir has just spent. Clients that do the same
// converge to equal shares, because those with more lose more.
const (
	// raiseWrites is added to a lowered share in five minutes, and beyond quietShare the less the closer it is to the
	// configured share: equal steps let a client with a large share keep it for long.
	raiseWrites = 10
	// lowerFactor is the part of it that is left after a cut. A cut counts at least half of the share as spent: a client
	// that was quiet must not start at nothing.
	lowerFactor = 0.6
	// quietShare is what the share of a quiet client rises to.
	quietShare = 0.1
	// limitingPart of the share is spent if it limits Weir.
	limitingPart = 0.5
	// limitingTTL is how long a share that limited Weir counts as limiting. Otherwise pauses between bursts keep a share
	// below that of a client that writes all the time.
	limitingTTL = 20 * time.Minute
	// minAdaptiveShare bounds cuts: the shares of a hundred clusters together are the quota.
	minAdaptiveShare = 0.01
)

// MaxStretch is how many intervals a busy pool waits at most while the share is lowered.
const MaxStretch = 20

// minRejected: after 429s for this many resources without an accepted write in between, the quota counts as used up. One
// alone may be the limit of that resource.
const minRejected = 2

// Throttle is a 429 to a write: for a used-up quota, or with Resource perhaps only for that one.
type Throttle struct {
	// Until is Azure's Retry-After.
	Until time.Time
	// Network is true for the quota of Microsoft.Network, and false for a bucket of Resource Manager.
	Network bool
	// Resource is the written resource if the 429 may concern only that one, else empty.
	Resource string
}

// fleetShare is the current share of one subscription.
type fleetShare struct {
	configured, current float64
	// No cut follows the last one before cutUntil: it has the same cause.
	cutUntil time.Time
	// raisedAt is the time of the last raise, or when the next one may begin.
	raisedAt time.Time
	// limitedAt is when the share last limited Weir.
	limitedAt time.Time
	// closedUntil is when the used-up quota is available again.
	closedUntil time.Time
	throttles   int
	// loweredAt and reason are those of the last cut.
	loweredAt time.Time
	reason    string
	// others is how many writes other clients had sent when the quota of Microsoft.Network was last used up.
	others   float64
	othersAt time.Time
	// rejected are resources with a 429 that may concern only them, since Azure last accepted a write, and its Until.
	rejected map[string]time.Time
}

func (s *fleetShare) floor() float64 { return min(minAdaptiveShare, s.configured/2) }

// isLowered reports whether the share is below the configured one.
func (s *fleetShare) isLowered() bool { return s.current < s.configured }

// lower cuts the share after spent writes in five minutes.
func (s *fleetShare) lower(spent float64, reason string, until, now time.Time) {
	if now.Before(s.cutUntil) {
		return
	}
	s.cutUntil = later(now.Add(bucketFillTime), until)
	used := min(s.current, max(spent/windowWrites, s.current/2))
	s.current = max(s.floor(), lowerFactor*used)
	s.loweredAt, s.raisedAt, s.reason = now, s.cutUntil, reason
}

// raise adds what is due since the last call; beyond quietShare only if the share has limited Weir recently, or many
// clients that are quiet for long would spend too much at once.
func (s *fleetShare) raise(spent float64, now time.Time) {
	passed := now.Sub(s.raisedAt)
	if passed <= 0 {
		return
	}
	s.raisedAt = now
	raised := s.current + raiseWrites/float64(windowWrites)*passed.Seconds()/windowLength.Seconds()
	if spent >= limitingPart*s.current*windowWrites {
		s.limitedAt = now
	}
	switch base := max(s.current, quietShare); {
	case now.Sub(s.limitedAt) > limitingTTL:
		raised = min(raised, quietShare)
	case raised > base:
		lowered := max(0, 1-base/s.configured)
		raised = base + (raised-base)*lowered*lowered
	}
	raised = min(raised, s.configured)
	s.current = max(s.current, raised)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// countRejection records a 429 and reports whether it is for a quota. While the share is lowered, other clients are known
// to use it up.
func (s *fleetShare) countRejection(t Throttle, now time.Time) bool {
	if t.Resource == "" || s.isLowered() {
		return true
	}
	maps.DeleteFunc(s.rejected, func(_ string, until time.Time) bool { return !until.After(now) })
	if s.rejected == nil {
		s.rejected = map[string]time.Time{}
	}
	if s.rejected[t.Resource] = t.Until; len(s.rejected) < minRejected {
		return false
	}
	clear(s.rejected)
	return true
}

// RecordAccepted forgets earlier 429s: Azure accepts writes, so they concerned only their resources.
func (b *Budget) RecordAccepted() { clear(b.fleet.rejected) }

// RecordThrottle lowers the share after a 429 for a used-up quota, once until the quota is available again. Until then
// pools with a change in the last MaxStretch intervals wait; admin states, retries, fills and exempt changes do not.
func (b *Budget) RecordThrottle(t Throttle, now time.Time) {
	if last := now.Add(windowLength); t.Until.After(last) {
		t.Until = last
	}
	if !b.fleet.countRejection(t, now) {
		return
	}
	spent, reason := b.window.countWrites(now), "429 for a write bucket of Resource Manager"
	b.fleet.throttles++
	if t.Network {
		reason = "429 for the quota of Microsoft.Network"
		if !now.Before(b.fleet.cutUntil) {
			b.fleet.others, b.fleet.othersAt = max(0, windowWrites-spent), now
		}
	}
	b.fleet.closedUntil = later(b.fleet.closedUntil, t.Until)
	b.fleet.lower(spent, reason, t.Until, now)
}

// recordBucket records what Azure reports of a bucket, and lowers the share if other clients have taken more than half of
// it. own is the bucket as if Weir were alone, of the documented size: one report of more must not make all others look
// used up.
func (b *Budget) recordBucket(name string, reported, own *bucket, now time.Time) BucketState {
	if own.at.IsZero() {
		own.tokens, own.at = own.size, now
	}
	remaining := own.tokensAt(now)
	state := BucketState{Name: name, At: now, Size: reported.size, Left: reported.tokens, Own: own.size - remaining, Others: max(0, remaining-reported.tokens)}
	if state.Others > own.size/2 {
		b.fleet.lower(b.window.countWrites(now), "other clients use the "+name+"'s bucket of Resource Manager", time.Time{}, now)
	}
	return state
}

// limitWaitingRate limits what one of several namespaces adds to the writes for which all pools wait: its changes may
// never be written, so that its share does not limit them.
func (b *Budget) limitWaitingRate(namespace string, reservedRate float64, now time.Time) float64 {
	if b.isOnlyNamespace(namespace, now) {
		return reservedRate
	}
	return min(reservedRate, b.fleet.current*windowWrites*(1-reservedShare)/windowLength.Seconds())
}

// longestWait returns how long a busy pool waits at most if all together write at reservedRate: an interval. If
// the quota of Microsoft.Network was used up and the share is still lowered, it is as much longer as the share requires:
// otherwise Azure rejects these writes, and urgent ones of all clients.
func (b *Budget) longestWait(reservedRate float64) time.Duration {
	if !b.fleet.isLowered() || b.fleet.othersAt.IsZero() {
		return b.interval
	}
	stretch := reservedRate * windowLength.Seconds() / max(b.fleet.current*windowWrites, 1)
	return time.Duration(float64(b.interval) * min(max(stretch, 1), MaxStretch))
}

// Fleet is the state of the share of a subscription.
type Fleet struct {
	// Configured is the share in five minutes that Weir may use at most.
	Configured float64 `json:"configuredShare"`
	// Reason is why the share is lower, or empty; LoweredAt is the time of the last cut.
	Reason    string     `json:"reason,omitempty"`
	LoweredAt *time.Time `json:"loweredAt,omitempty"`
	// ClosedUntil is when a used-up quota is available again.
	ClosedUntil *time.Time `json:"closedUntil,omitempty"`
	// Throttles counts 429s for write quotas since the start.
	Throttles int `json:"throttles"`
	// Others estimates the writes of other clients in the five minutes before OthersAt, when the quota of
	// Microsoft.Network was last used up: the quota less Weir's own.
	Others   *float64   `json:"others,omitempty"`
	OthersAt *time.Time `json:"othersAt,omitempty"`
	// Buckets are those of Resource Manager as last reported.
	Buckets []BucketState `json:"buckets,omitempty"`
}

// BucketState is a write bucket as last reported.
type BucketState struct {
	// Name is caller or subscription.
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	Size float64   `json:"size"`
	// Left is what Azure reported. Own and Others are the parts that Weir and other clients had taken.
	Left   float64 `json:"left"`
	Own    float64 `json:"own"`
	Others float64 `json:"others"`
}

// FleetAt returns the state of the share.
func (b *Budget) FleetAt(now time.Time) Fleet {
	s := b.fleet
	f := Fleet{Configured: s.configured * windowWrites, Throttles: s.throttles}
	if s.isLowered() {
		f.Reason, f.LoweredAt = s.reason, &s.loweredAt
	}
	if s.closedUntil.After(now) {
		f.ClosedUntil = &s.closedUntil
	}
	if !s.othersAt.IsZero() {
		f.Others, f.OthersAt = &s.others, &s.othersAt
	}
	for _, r := range b.reports {
		if !r.At.IsZero() {
			f.Buckets = append(f.Buckets, r)
		}
	}
	return f
}
