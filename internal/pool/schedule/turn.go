// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

const (
	// turnTimeout is how long a turn starts attempts.
	turnTimeout = 15 * time.Second
	// maxTurnAttempts leaves one for a pool that a batch returns for a separate update.
	maxTurnAttempts = 2
)

// Turn is the work between two writes of a load balancer: one attempt per namespace with a due change, and all new
// admin states. It bounds the wait of both.
type Turn struct {
	deadline time.Time
	attempt  int
	shares   map[string]turnShare
}

type turnShare struct {
	attempts, lastAttempt int
	done                  bool
}

// NewTurn starts a turn.
func NewTurn(now time.Time) *Turn {
	return &Turn{deadline: now.Add(turnTimeout), shares: map[string]turnShare{}}
}

// StartAttempt starts an attempt.
func (t *Turn) StartAttempt() { t.attempt++ }

// AddAttempt records that the attempt includes the namespace.
func (t *Turn) AddAttempt(namespace string) {
	s := t.shares[namespace]
	if s.lastAttempt != t.attempt {
		s.attempts, s.lastAttempt = s.attempts+1, t.attempt
	}
	t.shares[namespace] = s
}

// MarkDone records that a change of the namespace was settled.
func (t *Turn) MarkDone(namespace string) {
	s := t.shares[namespace]
	s.done = true
	t.shares[namespace] = s
}

// FilterRemaining returns the groups that may still be attempted. Checks are only allowed first.
func (t *Turn) FilterRemaining(groups []Group, now time.Time, interval time.Duration) []Group {
	if t.attempt == 0 {
		return groups
	}
	var left []Group
	for _, g := range groups {
		s := t.shares[g.Namespace]
		if now.Before(t.deadline) && !g.IsCheck() && (!s.done && s.attempts < maxTurnAttempts || g.isUrgent(now, interval)) {
			left = append(left, g)
		}
	}
	return left
}
