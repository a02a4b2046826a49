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

// resourceLease is the Lease in the API and its injected faults.
type resourceLease struct {
	holder string // empty if free
	until  time.Time
	since  time.Time // since the holder has it
	// failing is how requests fail, for a time or a count.
	failing string // "lost" (not applied) or "applied"; empty: no failure
	fails   int    // left; -1: unlimited
	failsTo time.Time
	// slow is additional latency until slowTo; zero slowTo: unlimited.
	slow   time.Duration
	slowTo time.Time
	// wanted is the number of waiters.
	wanted int
}

const somebodyElse = "somebody-else"

// free removes all faults of the Lease.
func (l *resourceLease) free() {
	l.failing, l.slow = "", 0
	if l.holder == somebodyElse {
		l.holder = ""
	}
}

// heldBy returns the current holder, or "".
func (l *resourceLease) heldBy(now time.Time) string {
	if l.until.After(now) {
		return l.holder
	}
	return ""
}

// hinders reports whether the process cannot acquire the Lease.
func (l *resourceLease) hinders(p *process) bool {
	holder := l.heldBy(time.Now())
	return holder != "" && holder != p.name || l.failure(false) != "" || l.wanted > 0
}

// takes returns the duration of a request.
func (l *resourceLease) takes() time.Duration {
	if !l.slowTo.IsZero() && !l.slowTo.After(time.Now()) {
		return requestTakes
	}
	return requestTakes + l.slow
}

// failure returns how a request fails, or "".
func (l *resourceLease) failure(count bool) string {
	switch {
	case l.failing == "" || l.fails == 0 || !l.failsTo.IsZero() && !l.failsTo.After(time.Now()):
		return ""
	case count && l.fails > 0:
		l.fails--
	}
	return l.failing
}

// entrance acquires the Lease for the workers of a process and tracks its use. It implements
// poolupdate.Lease with the shipped implementation, and that one's requests (lease.Holder).
type entrance struct {
	process *process
	shared  *lease.Shared
	term    time.Duration
	// Guarded by the stage's mu.
	in      int       // workers inside
	entered time.Time // last entry
	left    time.Time // last exit
	end     time.Time // end of the term as the process knows it; zero: not held
	have    bool      // the process knows it holds the lease
	turn    time.Time // start of the uninterrupted turn
	free    time.Time // release time
	long    bool      // the last turn used its full length
	stuck   bool      // the release failed
	refused bool
	// refusedAt is when a worker was last denied.
	refusedAt time.Time
}

func newEntrance(p *process, term time.Duration) *entrance {
	e := &entrance{process: p, term: term}
	e.shared = lease.NewShared(e, term, p.stage.log)
	return e
}

var errAPI = errors.New("the API does not answer")

// turn and breath restate the lease rule independently.
const (
	wholeTurn = time.Minute
	minBreath = 4 * time.Second
	// requestTakes is the latency to the API.
	requestTakes = 10 * time.Millisecond
)

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
	// A machine that is still asleep was woken by the end of the script.
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

// overstays reports whether an attempt exceeds the process's turn while others wait. The caller
// holds the stage's mu.
func (e *entrance) overstays() bool { return e.in > 0 && time.Since(e.turn) > wholeTurn }

func (e *entrance) Acquire(ctx context.Context) error {
	e.process.awakeLast()
	s, asked := e.process.stage, time.Now()
	if err := e.ask(ctx); err != nil {
		return err
	}
	defer e.process.awakeLast() // the response is processed when the machine resumes
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
	if err := e.process.fence.CheckWrite(); err != nil {
		return err
	}
	// A new leader takes over at once from the previous leader.
	if holder := l.heldBy(now); holder != "" && holder != e.process.name && !slices.Contains(s.former, holder) {
		if failure != "" {
			return errAPI
		}
		if !e.refused {
			s.trace("lease", "refused: %s has it", holder)
		}
		e.end, e.refused = time.Time{}, true
		return &lease.HolderError{Lease: "lease", Holder: holder, Until: l.until}
	}
	e.refused = false
	lapsed := l.heldBy(now) == "" // another process could acquire it
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

// ask sends a request to the API.
func (e *entrance) ask(ctx context.Context) error {
	s := e.process.stage
	s.mu.Lock()
	takes := s.lease.takes()
	s.mu.Unlock()
	return travel(ctx, takes)
}

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
	if over := e.process.fence.CheckWrite(); over != nil {
		err = over
	}
	if err != nil {
		failure = "lost"
	}
	kept := e.have && l.heldBy(now) == e.process.name // otherwise another process can acquire it, or has
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

// alone returns why a call is forbidden because another process may be writing, or "". The caller
// holds s.mu.
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
