// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// laws checks invariants of every script with its own counters. Guarded by the stage's lock.
// Operations are identified by the time of their change.
type laws struct {
	maxRetries int
	// carried are the operations in each pool's attempt: those found relevant since the last
	// attempt and not removed.
	carried  map[lb.PoolKey][]schedule.Operation
	begun    map[lb.PoolKey]bool
	attempts map[time.Time]int
	// writes counts the writes in each pool's attempt.
	writes    map[lb.PoolKey]int
	notBefore map[time.Time]time.Time
}

func newLaws(maxRetries int) laws {
	return laws{
		maxRetries: maxRetries,
		carried:    map[lb.PoolKey][]schedule.Operation{}, begun: map[lb.PoolKey]bool{},
		attempts: map[time.Time]int{}, writes: map[lb.PoolKey]int{}, notBefore: map[time.Time]time.Time{},
	}
}

// wrote reports whether a pool's running attempt has written it.
func (l *laws) wrote(pool lb.PoolID) bool { return l.begun[pool.Key()] && l.writes[pool.Key()] > 0 }

// asked records a relevance check. Before an attempt it may be repeated; after one it drops
// operations, and ends the attempt if none is left.
func (l *laws) asked(op schedule.Operation, relevant bool) {
	key := op.Pool.Key()
	if l.begun[key] && relevant {
		return
	}
	l.carried[key] = slices.DeleteFunc(l.carried[key], func(o schedule.Operation) bool { return o.ChangedAt.Equal(op.ChangedAt) })
	if relevant {
		l.carried[key] = append(l.carried[key], op)
	}
	l.begun[key] = l.begun[key] && len(l.carried[key]) > 0
}

// removed drops the operations of a Service.
func (l *laws) removed(service schedule.ServiceName) {
	for key, ops := range l.carried {
		if !l.begun[key] {
			l.carried[key] = slices.DeleteFunc(ops, func(o schedule.Operation) bool { return o.Service == service })
		}
	}
}

// attemptBegins checks that no operation is attempted more often than once plus once per retry.
// Further reads in an attempt, after a 412, do not count.
func (s *stage) attemptBegins(pool lb.PoolID) {
	if s.laws.begun[pool.Key()] {
		return
	}
	s.laws.begun[pool.Key()], s.laws.writes[pool.Key()] = true, 0
	for _, op := range s.laws.carried[pool.Key()] {
		s.laws.attempts[op.ChangedAt]++
		if n := s.laws.attempts[op.ChangedAt]; n > 1+s.laws.maxRetries {
			s.breach("attempt %d for %s, with %d retries allowed", n, spellService(op.Service), s.laws.maxRetries)
		}
	}
}

// callBegins checks that no call for a pool ignores a Retry-After of its operations, that an
// attempt writes at most twice, and that no call is made after the end.
func (s *stage) callBegins(call string, pool lb.PoolID) {
	now := time.Now()
	for _, op := range slices.Concat(s.laws.carried[pool.Key()], s.queued()) {
		until := ratelimit.MaxTime(op.NextEligibleAt, s.laws.notBefore[op.ChangedAt])
		if op.Pool.Key() == pool.Key() && until.After(now) {
			s.breach("%s although an operation for %s waits until %s", call, spellService(op.Service), s.stamp(until))
		}
	}
	if strings.HasPrefix(call, "PUT") {
		if s.laws.writes[pool.Key()]++; s.laws.writes[pool.Key()] > 2 {
			s.breach("%s, the third of one attempt", call)
		}
	}
	if s.stopped {
		s.breach("%s after the lanes were stopped", call)
	}
}

// attemptEnds checks that an attempt sends no duplicate notification, never both success and
// failure, and none after the end.
func (s *stage) attemptEnds(r Report) {
	for _, reported := range [][]schedule.ServiceName{r.Retrying, r.Failed, r.Updated} {
		for i, service := range reported {
			if slices.Contains(reported[:i], service) {
				s.breach("%s is told the same twice", spellService(service))
			}
		}
	}
	if len(r.Updated) > 0 && len(r.Retrying)+len(r.Failed) > 0 {
		s.breach("an attempt both succeeds and fails")
	}
	if s.stopped && len(r.Retrying)+len(r.Failed) > 0 {
		s.breach("a failure is told after the lanes were stopped")
	}
	key := r.Pool.Key()
	for _, op := range s.laws.carried[key] {
		if r.Fault != nil {
			s.laws.notBefore[op.ChangedAt] = r.Fault.RetryAt
		}
	}
	s.laws.begun[key], s.laws.carried[key] = false, nil
}
