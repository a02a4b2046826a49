// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"weir.dev/weir/internal/leader"
)

// resourceLease is the Lease in the API and its injected faults.
type resourceLease struct {
	holder string // empty if free
	until  time.Time
	since  time.Time // since the holder has it
	// failureMode is how requests fail, for a time or a count.
	failureMode  string // "lost" (not applied) or "applied"; empty: no failure
	failuresLeft int    // left; -1: unlimited
	failUntil    time.Time
	// delay is additional latency until delayUntil; zero delayUntil: unlimited.
	delay      time.Duration
	delayUntil time.Time
	// waiters is the number of waiters.
	waiters int
}

const otherHolder = "somebody-else"

// resetErrors removes all faults of the Lease.
func (l *resourceLease) resetErrors() {
	l.failureMode, l.delay = "", 0
	if l.holder == otherHolder {
		l.holder = ""
	}
}

// currentHolder returns the current holder, or "".
func (l *resourceLease) currentHolder(now time.Time) string {
	if l.until.After(now) {
		return l.holder
	}
	return ""
}

// isBlocked reports whether the process cannot acquire the Lease.
func (l *resourceLease) isBlocked(p *process) bool {
	holder := l.currentHolder(time.Now())
	return holder != "" && holder != p.name || l.nextFailure(false) != "" || l.waiters > 0
}

func (l *resourceLease) requestTime() time.Duration {
	if !l.delayUntil.IsZero() && !l.delayUntil.After(time.Now()) {
		return requestLatency
	}
	return requestLatency + l.delay
}

// nextFailure returns how a request fails, or "".
func (l *resourceLease) nextFailure(count bool) string {
	switch {
	case l.failureMode == "" || l.failuresLeft == 0 || !l.failUntil.IsZero() && !l.failUntil.After(time.Now()):
		return ""
	case count && l.failuresLeft > 0:
		l.failuresLeft--
	}
	return l.failureMode
}

// leaseClient acquires the Lease for the workers of a process and tracks its use. It implements
// updater.Lease with the shipped implementation, and that one's requests (leader.LeaseHolder).
type leaseClient struct {
	process *process
	shared  *leader.SharedLease
	term    time.Duration
	// Guarded by the stage's mu.
	workers       int       // workers inside
	enteredAt     time.Time // last entry
	exitedAt      time.Time // last exit
	termEnd       time.Time // end of the term as the process knows it; zero: not held
	isHeld        bool      // the process knows it holds the lease
	leaseStart    time.Time // start of the uninterrupted turn
	releaseTime   time.Time // release time
	usedFullLease bool      // the last turn used its full length
	releaseFailed bool      // the release failed
	rejected      bool
	// rejectedAt is when a worker was last denied.
	rejectedAt time.Time
}

func newLeaseClient(p *process, term time.Duration) *leaseClient {
	e := &leaseClient{process: p, term: term}
	e.shared = leader.NewSharedLease(e, term, p.stage.log)
	return e
}

var errAPI = errors.New("the API does not answer")

// The lease rule, restated independently.
const (
	maxLeaseTime = time.Minute
	minLeaseGap  = 4 * time.Second
	// requestLatency is the latency to the API.
	requestLatency = 10 * time.Millisecond
)

func (c *leaseClient) Enter(ctx context.Context) (valid func() bool, leave func(), err error) {
	valid, done, err := c.shared.Enter(ctx)
	c.process.waitAllRunning()
	s := c.process.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		c.rejectedAt = time.Now()
		for _, k := range s.pools { // the next try comes then
			k.faultEnd = latest(k.faultEnd, c.rejectedAt.Add(s.opts.Interval))
		}
		return nil, nil, err
	}
	// A machine that is still asleep was woken by the end of the script.
	if held := time.Since(c.leaseStart); held > maxLeaseTime && c.process.resumeSignal == nil && c.process.resumeTime.Before(c.leaseStart) {
		s.history.leaseErrors = append(s.history.leaseErrors, fmt.Sprintf("a lane enters %s after the lease was taken", held))
	}
	c.workers++
	c.enteredAt = time.Now()
	return valid, func() {
		s.mu.Lock()
		c.workers--
		c.exitedAt = time.Now()
		s.mu.Unlock()
		done()
	}, nil
}

// isOverLimit reports whether an attempt exceeds the process's turn while others wait. The caller
// holds the stage's mu.
func (c *leaseClient) isOverLimit() bool {
	return c.workers > 0 && time.Since(c.leaseStart) > maxLeaseTime
}

func (c *leaseClient) Acquire(ctx context.Context) error {
	c.process.waitAllRunning()
	s, requestedAt := c.process.stage, time.Now()
	if err := c.sendRequest(ctx); err != nil {
		return err
	}
	defer c.process.waitAllRunning() // the response is processed when the machine resumes
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := &s.lease, time.Now()
	if c.process.killed {
		return errProcessKilled
	}
	failure := l.nextFailure(true)
	if failure == "lost" {
		return errAPI
	}
	if err := c.process.fence.CheckWrite(); err != nil {
		return err
	}
	// A new leader takes over at once from the previous leader.
	if holder := l.currentHolder(now); holder != "" && holder != c.process.name && !slices.Contains(s.oldLeaderNames, holder) {
		if failure != "" {
			return errAPI
		}
		if !c.rejected {
			s.addLine("lease", "refused: %s has it", holder)
		}
		c.termEnd, c.rejected = time.Time{}, true
		return &leader.HolderError{Lease: "lease", Holder: holder, Until: l.until}
	}
	c.rejected = false
	lapsed := l.currentHolder(now) == "" // another process could acquire it
	l.holder, l.until, c.releaseFailed = c.process.name, now.Add(c.term), failure != ""
	if failure != "" {
		return errAPI
	}
	if !c.isHeld {
		if pause := now.Sub(c.releaseTime); c.usedFullLease && pause < minLeaseGap {
			s.history.leaseErrors = append(s.history.leaseErrors, fmt.Sprintf("after a whole turn it is taken again within %s", pause))
		}
		c.leaseStart, c.isHeld = now, true
	} else if lapsed {
		c.leaseStart = now
	}
	c.termEnd = requestedAt.Add(c.term)
	return nil
}

// sendRequest sends a request to the API.
func (c *leaseClient) sendRequest(ctx context.Context) error {
	s := c.process.stage
	s.mu.Lock()
	takes := s.lease.requestTime()
	s.mu.Unlock()
	return waitLatency(ctx, takes)
}

func (c *leaseClient) Release(ctx context.Context) error {
	s := c.process.stage
	c.process.waitAllRunning()
	err := c.sendRequest(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := &s.lease, time.Now()
	if c.process.killed {
		return errProcessKilled
	}
	failure := l.nextFailure(true)
	if over := c.process.fence.CheckWrite(); over != nil {
		err = over
	}
	if err != nil {
		failure = "lost"
	}
	kept := c.isHeld && l.currentHolder(now) == c.process.name // otherwise another process can acquire it, or has
	if failure != "lost" && l.holder == c.process.name {
		l.holder = ""
	}
	c.usedFullLease, c.releaseTime, c.termEnd, c.releaseFailed = kept && now.Sub(c.leaseStart) >= maxLeaseTime, now, time.Time{}, failure != ""
	c.isHeld = false
	if failure != "" {
		return errAPI
	}
	return nil
}

// sharedAccessReason returns why a call is forbidden because another process may be writing, or "". The caller
// holds s.mu.
func (p *process) sharedAccessReason(c call) string {
	s := p.stage
	if c.kind != http.MethodGet && c.kind != http.MethodPut {
		return "" // what follows an accepted write changes nothing
	}
	switch e := p.lease; {
	case p.isStopping:
		return "the process is not the leader any more"
	case s.lockedBy[c.pool.LoadBalancer.Key()] != nil:
		return "another holder has the lane"
	case e == nil:
	case e.workers == 0:
		return "no lane is in the lease"
	case c.kind == http.MethodPut && !c.isRetry && !e.termEnd.After(c.at):
		return "the lease has ended, or is lost"
	}
	return ""
}
