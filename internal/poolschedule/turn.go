// SPDX-License-Identifier: Apache-2.0

package poolschedule

import "time"

const (
	// turnLasts is how long after its begin a turn starts no further attempt.
	turnLasts = 15 * time.Second
	// maxTries bounds the attempts for a namespace in a turn: an attempt of several pools gives back
	// those that have to be written alone.
	maxTries = 2
)

// Turn is what a lane does between two writes of its load balancer: one attempt for each namespace
// that has a change due, and all first attempts for admin states. A write of the load balancer waits
// for one turn, and a due change waits for one write.
type Turn struct {
	ends    time.Time
	attempt int
	of      map[string]share
}

// share is what a namespace has had of a turn.
type share struct {
	tries, last int
	settled     bool
}

// BeginTurn returns a turn in which nothing was attempted yet.
func BeginTurn(now time.Time) *Turn {
	return &Turn{ends: now.Add(turnLasts), of: map[string]share{}}
}

// Next begins an attempt.
func (t *Turn) Next() { t.attempt++ }

// Take notes that the attempt takes a change of a namespace.
func (t *Turn) Take(namespace string) {
	s := t.of[namespace]
	if s.last != t.attempt {
		s.tries, s.last = s.tries+1, t.attempt
	}
	t.of[namespace] = s
}

// Settle notes that an attempt has ended for a change of a namespace, and did not give it back.
func (t *Turn) Settle(namespace string) {
	s := t.of[namespace]
	s.settled = true
	t.of[namespace] = s
}

// Left returns the groups that may still be attempted in this turn. The first attempt may be any;
// looks at pools without a known change have no other.
func (t *Turn) Left(groups []Group, now time.Time, interval time.Duration) []Group {
	if t.attempt == 0 {
		return groups
	}
	var left []Group
	for _, g := range groups {
		s := t.of[g.Namespace]
		if now.Before(t.ends) && !g.idle() && (!s.settled && s.tries < maxTries || g.urgent(now, interval)) {
			left = append(left, g)
		}
	}
	return left
}

// Idle reports whether no change is known to stand behind the group: its pool is only looked at.
func (g Group) Idle() bool { return g.idle() }
