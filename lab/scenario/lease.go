// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"weir.dev/weir/internal/lease"
)

// resourceLease is the Lease as the API holds it, and what is wrong with it.
type resourceLease struct {
	holder string // empty if nobody
	until  time.Time
	since  time.Time // of the holder
	// failing is how requests fail, until a time or for a number of them.
	failing string // "lost" (nothing happened) or "applied"; empty is not at all
	fails   int    // left; -1 is no limit
	failsTo time.Time
	// slow is how much longer requests take, until slowTo; zero is no limit.
	slow   time.Duration
	slowTo time.Time
	// wanted counts those who wait for it.
	wanted int
}

const somebodyElse = "somebody-else"

// free ends what is wrong with the Lease.
func (l *resourceLease) free() {
	l.failing, l.slow = "", 0
	if l.holder == somebodyElse {
		l.holder = ""
	}
}

// heldBy reports who holds the Lease now; empty if nobody.
func (l *resourceLease) heldBy(now time.Time) string {
	if l.until.After(now) {
		return l.holder
	}
	return ""
}

// hinders reports whether the process cannot have the Lease.
func (l *resourceLease) hinders(p *process) bool {
	holder := l.heldBy(time.Now())
	return holder != "" && holder != p.name || l.failure(false) != "" || l.wanted > 0
}

// takes is how long a request takes.
func (l *resourceLease) takes() time.Duration {
	if !l.slowTo.IsZero() && !l.slowTo.After(time.Now()) {
		return requestTakes
	}
	return requestTakes + l.slow
}

// failure returns how a request fails; empty if it does not.
func (l *resourceLease) failure(count bool) string {
	switch {
	case l.failing == "" || l.fails == 0 || !l.failsTo.IsZero() && !l.failsTo.After(time.Now()):
		return ""
	case count && l.fails > 0:
		l.fails--
	}
	return l.failing
}

// entrance is how the lanes of a process enter the Lease, and what the stage knows of
// it. It implements poolupdate.Lease around the lease that ships, and the requests of
// that one (lease.Holder).
type entrance struct {
	process *process
	shared  *lease.Shared
	term    time.Duration
	// These are guarded by the stage's mu.
	in      int       // lanes that are in
	entered time.Time // when the last one did
	left    time.Time // when the last one left
	end     time.Time // of the term, as far as the process can know; zero if it is not ours
	have    bool      // the process knows that the lease is its own
	turn    time.Time // since when, without a break
	free    time.Time // when it was given back
	long    bool      // the last turn was a whole one
	stuck   bool      // giving it back has failed
	refused bool
	// refusedAt is when a lane was last turned away.
	refusedAt time.Time
}

func newEntrance(p *process, term time.Duration) *entrance {
	e := &entrance{process: p, term: term}
	e.shared = lease.NewShared(e, term, p.stage.log)
	return e
}

var errAPI = errors.New("the API does not answer")

// turn and breath are the stage's own idea of the rule.
const (
	wholeTurn = time.Minute
	minBreath = 4 * time.Second
	// requestTakes is how far the API is away.
	requestTakes = 10 * time.Millisecond
)

// Enter implements poolupdate.Lease.
func (e *entrance) Enter(ctx context.Context) (valid func() bool, leave func(), err error) {
	valid, done, err := e.shared.Enter(ctx)
	e.process.awakeLast()
	s := e.process.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		e.refusedAt = time.Now()
		for _, k := range s.pools { // the next try comes then
			k.trouble = later(k.trouble, e.refusedAt.Add(s.opts.Interval))
		}
		return nil, nil, err
	}
	// A machine that still sleeps is one that the end of the play has woken.
	if held := time.Since(e.turn); held > wholeTurn && e.process.asleep == nil && e.process.woke.Before(e.turn) {
		s.journal.selfish = append(s.journal.selfish, fmt.Sprintf("a lane enters %s after the lease was taken", held))
	}
	e.in++
	e.entered = time.Now()
	return valid, func() {
		s.mu.Lock()
		e.in--
		e.left = time.Now()
		s.mu.Unlock()
		done()
	}, nil
}

// overstays reports whether an attempt lasts longer than the process may keep the lease
// before others had it. The caller holds the stage's mu.
func (e *entrance) overstays() bool { return e.in > 0 && time.Since(e.turn) > wholeTurn }

// Acquire implements lease.Holder.
func (e *entrance) Acquire(ctx context.Context) error {
	e.process.awakeLast()
	s, asked := e.process.stage, time.Now()
	if err := e.ask(ctx); err != nil {
		return err
	}
	defer e.process.awakeLast() // the answer is there when the machine goes on
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := &s.lease, time.Now()
	if e.process.dead {
		return errDead
	}
	failure := l.failure(true)
	if failure == "lost" {
		return errAPI
	}
	if err := e.process.fence.MayWrite(); err != nil {
		return err
	}
	// One that leads takes it over at once from a replica that led before.
	if holder := l.heldBy(now); holder != "" && holder != e.process.name && !slices.Contains(s.former, holder) {
		if failure != "" {
			return errAPI
		}
		if !e.refused {
			s.trace("lease", "refused: %s has it", holder)
		}
		e.end, e.refused = time.Time{}, true
		return &lease.HeldError{Lease: "lease", Holder: holder, Until: l.until}
	}
	e.refused = false
	lapsed := l.heldBy(now) == "" // others could have it
	l.holder, l.until, e.stuck = e.process.name, now.Add(e.term), failure != ""
	if failure != "" {
		return errAPI
	}
	if !e.have {
		if pause := now.Sub(e.free); e.long && pause < minBreath {
			s.journal.selfish = append(s.journal.selfish, fmt.Sprintf("after a whole turn it is taken again within %s", pause))
		}
		e.turn, e.have = now, true
	} else if lapsed {
		e.turn = now
	}
	e.end = asked.Add(e.term)
	return nil
}

// ask takes a request to the API.
func (e *entrance) ask(ctx context.Context) error {
	s := e.process.stage
	s.mu.Lock()
	takes := s.lease.takes()
	s.mu.Unlock()
	return travel(ctx, takes)
}

// Release implements lease.Holder.
func (e *entrance) Release(ctx context.Context) error {
	s := e.process.stage
	e.process.awakeLast()
	err := e.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := &s.lease, time.Now()
	if e.process.dead {
		return errDead
	}
	failure := l.failure(true)
	if over := e.process.fence.MayWrite(); over != nil {
		err = over
	}
	if err != nil {
		failure = "lost"
	}
	kept := e.have && l.heldBy(now) == e.process.name // else others could have it, or have
	if failure != "lost" && l.holder == e.process.name {
		l.holder = ""
	}
	e.long, e.free, e.end, e.stuck = kept && now.Sub(e.turn) >= wholeTurn, now, time.Time{}, failure != ""
	e.have = false
	if failure != "" {
		return errAPI
	}
	return nil
}

// alone says why a call must not be made because somebody else may be at work; empty
// if it may. The caller holds s.mu.
func (p *process) alone(c call) string {
	s := p.stage
	if c.kind != http.MethodGet && c.kind != http.MethodPut {
		return "" // what follows an accepted write changes nothing
	}
	switch e := p.lease; {
	case p.stopping:
		return "the process is not the leader any more"
	case s.locked[c.pool.LoadBalancer.Key()] != nil:
		return "somebody else has the lane"
	case e == nil:
	case e.in == 0:
		return "no lane is in the lease"
	case c.kind == http.MethodPut && !c.again && !e.end.After(c.at):
		return "the lease has ended, or is lost"
	}
	return ""
}
