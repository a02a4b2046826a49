// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/ratelimit"
)

type result struct {
	// plan is the desired state; readAt is when the state it was compared with was read.
	plan   *plan
	readAt time.Time
	// results holds results by machine key; missing machines are still working.
	results map[string]machineResult
	// inSync is true if the scale set model is in sync.
	inSync bool
	// retryNow requests another attempt at once.
	retryNow bool
	// blockedUntil is when to request admission again; blocksAll applies it to all workers.
	blockedUntil  time.Time
	blockedReason string
	blocksAll     bool
	hasWrites     bool
	// notBefore is the Retry-After time from Azure.
	notBefore time.Time
}

type machineResult struct {
	state  state
	reason string
	// unusable is true for a waiting machine that cannot join.
	unusable bool
	err      error
}

var (
	resultDone    = machineResult{state: stateDone}
	resultWorking = machineResult{state: stateWorking}
)

const reasonLeaseLost = "the resource lease is lost, or ends before a write would"

// attempt is a running attempt, with a snapshot of its worker.
type attempt struct {
	u *Updater
	result
	worker *worker
	id     lb.ResourceID
	mode   readMode
	start  time.Time
	// machines are those named by pools. Pending ones are working or waiting; failed ones were not
	// requested again.
	machines        map[string]nic.Machine
	pending, failed map[string]bool
	// valid reports whether a write may still start.
	valid func() bool
}

func (u *Updater) runAttempt(ctx context.Context, l *worker, mode readMode) result {
	t := u.newAttempt(l, mode)
	if u.cfg.Lease != nil {
		valid, release, err := u.cfg.Lease.Enter(ctx)
		if err != nil {
			t.blockedUntil, t.blockedReason, t.blocksAll = time.Now().Add(leaseRetryDelay), err.Error(), true
			return t.result
		}
		defer release()
		t.valid = valid
	}
	within, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if l.resourceGroup == "" {
		t.updateScaleSet(within)
	} else {
		for _, m := range t.machines {
			t.updateInterface(within, m)
		}
	}
	return t.result
}

func (u *Updater) newAttempt(l *worker, mode readMode) *attempt {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.newAttemptLocked(l, mode)
}

// newAttemptLocked requires u.mu.
func (u *Updater) newAttemptLocked(l *worker, mode readMode) *attempt {
	now := time.Now()
	t := &attempt{
		u: u, worker: l, id: l.id, mode: mode, start: now, result: result{plan: u.plan, readAt: now, results: map[string]machineResult{}},
		machines: map[string]nic.Machine{}, pending: map[string]bool{}, failed: map[string]bool{}, valid: func() bool { return true },
	}
	for key, m := range l.machines {
		t.machines[key] = m.Machine
		t.pending[key], t.failed[key] = m.state == stateWorking || m.state == stateWaiting, m.state == stateFailed
	}
	return t
}

// resultForError returns working if the request was never sent: then the worker waits.
func (a *attempt) resultForError(m nic.Machine, err error) machineResult {
	f := armerror.FromError(err)
	a.readAt, a.notBefore = ratelimit.MaxTime(a.readAt, a.start), ratelimit.MaxTime(a.notBefore, f.RetryAt)
	switch {
	case f.Class == armerror.Stale:
		return a.resultForMissing(m)
	case f.IsNotSent():
		a.setBlocked(f.RetryAt, f.Error())
		return resultWorking
	}
	return machineResult{state: stateFailed, err: err}
}

// resultForMissing returns the result for a missing machine, which is in no pool.
func (a *attempt) resultForMissing(m nic.Machine) machineResult {
	if p := a.plan.desired.MachinePools(m); len(p[lb.IPv4])+len(p[lb.IPv6]) > 0 {
		return machineResult{state: stateWaiting, reason: "Azure has no " + m.String(), unusable: true}
	}
	return resultDone
}

func (a *attempt) failPending(err error) {
	for key, m := range a.machines {
		if a.pending[key] {
			if v := a.resultForError(m, err); v != resultWorking {
				a.results[key] = v
			}
		}
	}
}

func (a *attempt) setBlocked(until time.Time, reason string) {
	if now := time.Now(); !until.After(now) {
		until = now.Add(leaseRetryDelay)
	}
	a.blockedUntil, a.blockedReason = until, reason
}

// canWrite checks the lease again, because reads take time.
func (a *attempt) canWrite() bool {
	if !a.valid() {
		a.setBlocked(time.Time{}, reasonLeaseLost)
		return false
	}
	return true
}

// isWriteConflict reports whether the resource changed after it was read, and Azure sent no Retry-After.
func isWriteConflict(err error) bool {
	f := armerror.FromError(err)
	return f.IsPreconditionFailed() && f.RetryAt.IsZero()
}

// newNotAppliedError is the fault of a write that Azure accepted but does not show.
func newNotAppliedError(change string) error {
	return &armerror.Fault{
		Class: armerror.Retriable, Code: "NotShown", Reason: "not_shown",
		Err: fmt.Errorf("%s: %w", change, errNotApplied),
	}
}

var errNotApplied = errors.New("Azure has taken what was written, and does not show it")
