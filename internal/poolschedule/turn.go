// SPDX-License-Identifier: Apache-2.0

package poolschedule

import "time"

const (
	// turnLasts is how long a turn starts attempts.
	turnLasts = 15 * time.Second
	// maxTries bounds a namespace's attempts: a batch may return pools for separate updates.
	maxTries = 2
)

// Turn is the work between two writes of a load balancer: one attempt per namespace with a due
// change, and all new admin states. It bounds the wait of load balancer writes, and of due changes.
type Turn struct {
	ends    time.Time
	attempt int
	of      map[string]share
}

type share struct {
	tries, last int
	settled     bool
}

// BeginTurn starts a turn.
func BeginTurn(now time.Time) *Turn {
	return &Turn{ends: now.Add(turnLasts), of: map[string]share{}}
}

// Next starts an attempt.
func (t *Turn) Next() { t.attempt++ }

// Take records that the attempt includes the namespace.
func (t *Turn) Take(namespace string) {
	s := t.of[namespace]
	if s.last != t.attempt {
		s.tries, s.last = s.tries+1, t.attempt
	}
	t.of[namespace] = s
}

// Settle records that a change of the namespace was settled.
func (t *Turn) Settle(namespace string) {
	s := t.of[namespace]
	s.settled = true
	t.of[namespace] = s
}

// Left returns the groups that may still be attempted. Checks are only allowed first.
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

// Idle reports whether the group is only a check.
func (g Group) Idle() bool { return g.idle() }
