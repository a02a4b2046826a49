// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// The stage's own idea of what holds a change up. Each is an upper bound: the lanes may
// go earlier.
const (
	// company is how long a change waits for others.
	company = 250 * time.Millisecond
	// prompt is how late an attempt may begin that nothing holds up, and promptShared the
	// same where a lease has to be acquired before, which waits for the end of a turn.
	prompt       = 10 * time.Second
	promptShared = 30 * time.Second
	// aLook is how many intervals a look for drift stands back behind changes.
	aLook = 20
)

// due returns when a change that waits is allowed by everything but its lane; zero if
// none waits. The caller holds s.mu.
func (s *Stage) due(k *pool) time.Time { return s.allowed(k, k.waits) }

// allowed returns when what waits since a time may be attempted; zero if nothing does. The
// caller holds s.mu.
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

// laneFree returns since when nobody has worked in a lane; ok is false if somebody does.
// The caller holds s.mu.
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

// lane returns the pools of a load balancer, by name. The caller holds s.mu.
func (s *Stage) lane(id lb.LoadBalancerID) []*pool {
	var all []*pool
	for _, k := range s.sorted() {
		if k.id.LoadBalancer.Key() == id.Key() {
			all = append(all, k)
		}
	}
	return all
}

// overdue names the changes, and the looks that were put off, in a lane that are due for a while, with nobody at work. The
// caller holds s.mu.
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

// begins notes that an attempt of a pool does, and what is wrong with that. The caller
// holds s.mu.
func (s *Stage) begins(k *pool) {
	now, id := time.Now(), k.id.LoadBalancer
	s.endLook(id, k)
	k.comesBack()
	s.journal.late = append(s.journal.late, s.overdue(id, now)...)
	if k.again.After(now) && !k.admin {
		s.journal.hasty = append(s.journal.hasty, fmt.Sprintf("%s is tried again at %s, and not at %s", k.id.Name, s.clock(now), s.clock(k.again)))
	}
	if until := later(k.parkedUntil, k.patience); until.After(now) { // the client would not send it: that is the second line
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
	if recent { // else a look may have waited for so long that it goes first
		k.attempt.passed = passed
	}
	k.paced.spent = s.spentOn(k)
	k.begun, k.waits, k.first, k.putOff, k.looks = now, time.Time{}, time.Time{}, time.Time{}, false
}

// comesBack has what a write of all pools was to carry wait again: it was nobody's attempt. The
// caller holds the stage's mu.
func (k *pool) comesBack() {
	if a := k.attempt; a != nil && a.together {
		k.admin = k.admin || a.admin
	}
}

// passedBy returns a change that was due before the lane took some pools. It says so at once
// if that was the one's turn, and not that of any of them. The caller holds s.mu.
func (s *Stage) passedBy(taken ...*pool) (passed string) {
	// It may have taken them as soon as the one before was done, and waited for its locks.
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
			continue // it was attempted lately, and may change all the time
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

// turnSince is since when a pool that is taken waits for its turn; zero if it is only looked at. The
// caller holds the stage's mu.
func (k *pool) turnSince() time.Time {
	switch a := k.attempt; {
	case a != nil && !a.first.IsZero(): // a write of all pools came to nothing
		return a.first
	case !k.again.IsZero():
		return k.again
	case k.waits.IsZero(): // a look
		return time.Time{}
	}
	return k.first
}
