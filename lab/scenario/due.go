// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// Upper bounds for delays, restated independently. The updater may be faster.
const (
	// company is how long a change waits for others to join.
	company = 250 * time.Millisecond
	// prompt is the maximum delay of an attempt that nothing blocks; promptShared includes the
	// acquisition of a lease at the end of another turn.
	prompt       = 10 * time.Second
	promptShared = 30 * time.Second
	// aLook is how many intervals a drift read yields to changes.
	aLook = 20
)

// due returns when the queued change is allowed, ignoring its worker; zero if none is queued. The
// caller holds s.mu.
func (s *Stage) due(k *pool) time.Time { return s.allowed(k, k.waits) }

// allowed returns when work queued at the given time may be attempted; zero if none. The caller
// holds s.mu.
func (s *Stage) allowed(k *pool, since time.Time) time.Time {
	p := s.process
	if since.IsZero() || p == nil {
		return time.Time{}
	}
	at := later(since.Add(company), later(k.again, later(k.patience, k.excuse)))
	at = later(at, s.pacedUntil(k))
	if p.lease != nil && !p.lease.refusedAt.IsZero() {
		at = later(at, p.lease.refusedAt.Add(s.opts.Interval))
	}
	return later(at, later(s.gatesOpen(k), p.woke))
}

// laneFree returns since when a worker is idle; ok is false if it is busy. The caller holds s.mu.
func (s *Stage) laneFree(id lb.LoadBalancerID) (since time.Time, ok bool) {
	if s.locked[id.Key()] != nil {
		return time.Time{}, false
	}
	since = s.process.freed[id.Key()]
	for _, k := range s.lane(id) {
		if k.underWay() {
			return time.Time{}, false
		}
		since = later(since, k.ended)
	}
	return since, true
}

// lane returns the pools of a load balancer, sorted by name. The caller holds s.mu.
func (s *Stage) lane(id lb.LoadBalancerID) []*pool {
	var all []*pool
	for _, k := range s.sorted() {
		if k.id.LoadBalancer.Key() == id.Key() {
			all = append(all, k)
		}
	}
	return all
}

// overdue returns the overdue changes and postponed reads of an idle worker. The caller holds s.mu.
func (s *Stage) overdue(id lb.LoadBalancerID, now time.Time) []string {
	p := s.process
	if p == nil || p.dead || p.stopping || p.asleep != nil {
		return nil
	}
	bound := prompt
	if p.lease != nil {
		if bound = promptShared; s.lease.hinders(p) {
			return nil
		}
	}
	free, ok := s.laneFree(id)
	if !ok {
		return nil
	}
	var late []string
	for _, k := range s.lane(id) {
		what, since := "a change", k.waits
		if since.IsZero() {
			what, since = "a look that was put off", k.putOff
		}
		at := s.allowed(k, since)
		if at.IsZero() {
			continue
		}
		if over := now.Sub(later(at, free)); over > bound {
			late = append(late, fmt.Sprintf("%s of %s waits since %s, is due since %s, and is not attempted at %s", what, k.id.Name, s.clock(since), s.clock(later(at, free)), s.clock(now)))
		}
	}
	return late
}

// begins records the start of a pool's attempt and its violations. The caller holds s.mu.
func (s *Stage) begins(k *pool) {
	now, id := time.Now(), k.id.LoadBalancer
	s.endLook(id, k)
	k.comesBack()
	s.journal.late = append(s.journal.late, s.overdue(id, now)...)
	if k.again.After(now) && !k.admin {
		s.journal.hasty = append(s.journal.hasty, fmt.Sprintf("%s is tried again at %s, and not at %s", k.id.Name, s.clock(now), s.clock(k.again)))
	}
	if until := later(k.parkedUntil, k.patience); until.After(now) { // the client would not send it; second line of defense
		s.journal.hasty = append(s.journal.hasty, fmt.Sprintf("an attempt of %s begins at %s, which is parked until %s", k.id.Name, s.clock(now), s.clock(until)))
	}
	s.journal.hasty = append(s.journal.hasty, s.passes(k, now)...)
	passed := s.passedBy(k)
	recent := !k.begun.IsZero() && now.Sub(k.begun) <= aLook*s.opts.Interval
	took := k.first
	if !k.again.IsZero() {
		took = k.again
	}
	if a := k.attempt; a != nil && a.together && !a.first.IsZero() {
		took = a.first
	}
	k.attempt, k.last = &attempt{added: k.added, admin: k.admin, took: took}, answer{}
	k.admin = false
	if recent { // otherwise a read waited so long that it goes first
		k.attempt.passed = passed
	}
	k.paced.spent = s.spentOn(k)
	k.begun, k.waits, k.first, k.putOff, k.looks = now, time.Time{}, time.Time{}, time.Time{}, false
}

// comesBack requeues work taken by a void batch. The caller holds the stage's mu.
func (k *pool) comesBack() {
	if a := k.attempt; a != nil && a.together {
		k.admin = k.admin || a.admin
	}
}

// passedBy returns a change that was due before the worker dequeued the given pools, if that change
// was next in order. The caller holds s.mu.
func (s *Stage) passedBy(taken ...*pool) (passed string) {
	// The worker may have dequeued them right after the previous attempt and waited for its locks.
	var picked, own time.Time
	lane, first, admin, look := s.lane(taken[0].id.LoadBalancer), "", false, true
	for _, other := range lane {
		picked = later(picked, other.ended)
	}
	for _, k := range taken {
		if since := k.turnSince(); own.IsZero() || !since.IsZero() && since.Before(own) {
			first, own = k.id.Name, since
		}
		admin, look = admin || k.admin, look && k.waits.IsZero()
	}
	for _, rival := range lane {
		at := s.due(rival)
		if look && picked.Sub(rival.paced.begun) < s.opts.Interval {
			continue // attempted recently, and may change all the time
		}
		if slices.Contains(taken, rival) || rival.looks || at.IsZero() || !at.Add(time.Second).Before(picked) {
			continue
		}
		passed = fmt.Sprintf("a change of %s that is due since %s", rival.id.Name, s.clock(at))
		overdue := at.Add(s.opts.Interval + time.Second).Before(picked)
		if overdue && !admin && !own.IsZero() && at.Add(time.Second).Before(own) {
			s.journal.unfair = append(s.journal.unfair, fmt.Sprintf("%s is taken, due since %s, before %s", first, s.clock(own), passed))
		}
	}
	return passed
}

// turnSince returns since when a dequeued pool waits for its turn; zero if it is only read. The
// caller holds the stage's mu.
func (k *pool) turnSince() time.Time {
	switch a := k.attempt; {
	case a != nil && !a.first.IsZero(): // a void batch
		return a.first
	case !k.again.IsZero():
		return k.again
	case k.waits.IsZero(): // a read
		return time.Time{}
	}
	return k.first
}
