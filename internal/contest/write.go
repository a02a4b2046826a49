// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weir.dev/weir/internal/fault"
)

// Lease is the lock that other controllers of the load balancers take; see
// poolupdate.Lease.
type Lease interface {
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}

// ErrLeaseLost says that a write was not made.
var ErrLeaseLost = &fault.Fault{
	Class: fault.Retriable, Code: "LeaseLost", Reason: "lease",
	Err: errors.New("the resource lease is lost, or ends before a write would"),
}

// leaseAgainAfter is when the lease is asked for again that somebody else has.
const leaseAgainAfter = 30 * time.Second

// Leased does something while the lease is held; without one, until the context is done. Nothing
// is to be written any more once valid returns false.
func Leased(ctx context.Context, lease Lease, do func(valid func() bool)) error {
	if lease == nil {
		do(func() bool { return ctx.Err() == nil })
		return nil
	}
	valid, leave, err := lease.Enter(ctx)
	if err != nil {
		return &fault.Fault{Class: fault.Retriable, Code: "LeaseHeld", Reason: "lease", RetryAt: time.Now().Add(leaseAgainAfter), Err: err}
	}
	defer leave()
	do(valid)
	return nil
}

// deadline bounds one Write. What it leaves behind is settled by the next read.
const deadline = 10 * time.Minute

// Write has a try read, plan and write something while the lease is held, and once more if
// somebody else wrote in between: that is everyday, and no failure to tell of. A second 412 is one.
// What a try finds in the midst of another's write ends it as always. overtaken is told of a second
// try, and whether it went well.
func Write(ctx context.Context, lease Lease, what string, overtaken func(settled bool), try func(ctx context.Context, valid func() bool) error) error {
	within, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	var err error
	held := Leased(within, lease, func(valid func() bool) {
		err = try(within, valid)
		if f := fault.From(err); f.Overtaken() && f.RetryAt.IsZero() {
			err = try(within, valid)
			overtaken(err == nil)
		}
	})
	switch {
	case held != nil:
		return held
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return &fault.Fault{
			Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown", Undecided: true,
			Err: fmt.Errorf("%s: no end within %s: %w", what, deadline, err),
		}
	}
	return err
}

// What somebody else is just writing is read again after a while: a write takes some
// seconds, and one that is still in progress after minutes may never end.
const (
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

// mostInProgress bounds what is remembered of things that somebody else is writing.
const mostInProgress = 1024

// CodeUpdating is the code of what somebody is just writing.
const CodeUpdating = "Updating"

// InProgress counts how often something was found that somebody else is just writing. Its
// methods may be called from any goroutine. The zero value has found nothing.
type InProgress struct {
	mu    sync.Mutex // guards what follows
	found map[string]int
}

// Found is the fault of something that somebody else is just writing.
func (p *InProgress) Found(what string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := min(firstPause<<min(max(p.found[what]-2, 0), 10), lastPause)
	if p.found == nil || len(p.found) >= mostInProgress { // some were deleted before anybody saw them free
		p.found = map[string]int{}
	}
	p.found[what]++
	return &fault.Fault{
		Class: fault.Retriable, Code: CodeUpdating, Reason: "conflict", RetryAt: now.Add(pause),
		Err: fmt.Errorf("%s: another write to it is under way", what),
	}
}

// Free notes that nobody is writing something.
func (p *InProgress) Free(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.found, what)
}
