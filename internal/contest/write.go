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

// Lease is the lock shared with other controllers of the load balancers; see poolupdate.Lease.
type Lease interface {
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}

// ErrLeaseLost means that a write was not made.
var ErrLeaseLost = &fault.Fault{
	Class: fault.Retriable, Code: "LeaseLost", Reason: "lease",
	Err: errors.New("the resource lease is lost, or ends before a write would"),
}

const leaseAgainAfter = 30 * time.Second

// Leased calls do while holding the lease, if any. do must not write once valid returns false.
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

// deadline is the timeout of a write with its second try. The next read resolves what it leaves
// open.
const deadline = 10 * time.Minute

// Write calls try, which reads, plans and writes, under the lease, and once more after a 412, which
// is common and not reported. Then overtaken is called with the success of the second try.
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

// The pause before another read of a resource that another client is updating: a write takes
// seconds, or may never end.
const (
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

// mostInProgress bounds memory.
const mostInProgress = 1024

// CodeUpdating is the fault code of a resource that another client is updating.
const CodeUpdating = "Updating"

// InProgress counts how often resources were found being updated by another client. Safe for
// concurrent use; the zero value is ready.
type InProgress struct {
	mu    sync.Mutex // guards the fields below
	found map[string]int
}

// Found returns the fault for such a resource.
func (p *InProgress) Found(what string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := min(firstPause<<min(max(p.found[what]-2, 0), 10), lastPause)
	if p.found == nil || len(p.found) >= mostInProgress { // deleted resources are never freed
		p.found = map[string]int{}
	}
	p.found[what]++
	return &fault.Fault{
		Class: fault.Retriable, Code: CodeUpdating, Reason: "conflict", RetryAt: now.Add(pause),
		Err: fmt.Errorf("%s: another write to it is under way", what),
	}
}

// Free records that a resource is not being updated.
func (p *InProgress) Free(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.found, what)
}
