// SPDX-License-Identifier: Apache-2.0

package conflict

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weir.dev/weir/internal/armerror"
)

// Lease is the lock shared with other controllers of the load balancers; see updater.Lease.
type Lease interface {
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}

// ErrLeaseExpired means that a write was not made.
var ErrLeaseExpired = &armerror.Fault{
	Class: armerror.Retriable, Code: "LeaseLost", Reason: "lease",
	Err: errors.New("the resource lease is lost, or ends before a write would"),
}

const leaseRetryDelay = 30 * time.Second

// WithLease calls do while holding the lease, if any. do must not write once valid returns false.
func WithLease(ctx context.Context, lease Lease, do func(valid func() bool)) error {
	if lease == nil {
		do(func() bool { return ctx.Err() == nil })
		return nil
	}
	valid, leave, err := lease.Enter(ctx)
	if err != nil {
		return &armerror.Fault{Class: armerror.Retriable, Code: "LeaseHeld", Reason: "lease", RetryAt: time.Now().Add(leaseRetryDelay), Err: err}
	}
	defer leave()
	do(valid)
	return nil
}

// writeTimeout is the timeout of a write with its second try. The next read resolves what it leaves
// open.
const writeTimeout = 10 * time.Minute

// RunWrite calls try, which reads, plans and writes, under the lease, and once more after a 412, which
// is common and not reported. Then overtaken is called with the success of the second try.
func RunWrite(ctx context.Context, lease Lease, resource string, overtaken func(settled bool), try func(ctx context.Context, valid func() bool) error) error {
	within, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var err error
	leaseErr := WithLease(within, lease, func(valid func() bool) {
		err = try(within, valid)
		if f := armerror.FromError(err); f.IsPreconditionFailed() && f.RetryAt.IsZero() {
			err = try(within, valid)
			overtaken(err == nil)
		}
	})
	switch {
	case leaseErr != nil:
		return leaseErr
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return &armerror.Fault{
			Class: armerror.Retriable, Code: armerror.CodeOutcomeUnknown, Reason: "outcome_unknown", MayBeApplied: true,
			Err: fmt.Errorf("%s: no end within %s: %w", resource, writeTimeout, err),
		}
	}
	return err
}

// The pause before another read of a resource that another client is updating: a write takes
// seconds, or may never end.
const (
	minRetryDelay = 5 * time.Second
	maxRetryDelay = 5 * time.Minute
)

// maxInProgress bounds memory.
const maxInProgress = 1024

// CodeUpdating is the fault code of a resource that another client is updating.
const CodeUpdating = "Updating"

// InProgress counts how often resources were found being updated by another client. Safe for
// concurrent use; the zero value is ready.
type InProgress struct {
	mu    sync.Mutex // guards the fields below
	found map[string]int
}

// RecordUpdating returns the fault for such a resource.
func (p *InProgress) RecordUpdating(resource string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := min(minRetryDelay<<min(max(p.found[resource]-2, 0), 10), maxRetryDelay)
	if p.found == nil || len(p.found) >= maxInProgress { // deleted resources are never freed
		p.found = map[string]int{}
	}
	p.found[resource]++
	return &armerror.Fault{
		Class: armerror.Retriable, Code: CodeUpdating, Reason: "conflict", RetryAt: now.Add(pause),
		Err: fmt.Errorf("%s: another write to it is under way", resource),
	}
}

// RecordIdle records that a resource is not being updated.
func (p *InProgress) RecordIdle(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.found, resource)
}
