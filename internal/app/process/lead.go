// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"weir.dev/weir/internal/kube/leases"
	"weir.dev/weir/internal/lead"
)

// NewFence returns the fence that stops the writes of a process that no longer leads; nil without
// an election.
func NewFence(o Options) *lead.Fence {
	if !o.LeaderElect {
		return nil
	}
	return lead.NewFence(o.Election.RenewDeadline, elapsed(sinceStart, time.Now))
}

// newLock returns the lock of the leader's election, which reports to the fence; nil without an
// election.
func (m Manager) newLock(ctx context.Context) (resourcelock.Interface, error) {
	if !m.LeaderElect {
		return nil, nil
	}
	first := m.First
	if first == nil {
		first = func(context.Context) error { return nil }
	}
	return leases.NewLeaderLock(ctx, m.API, m.LeaseNamespace, m.LeaseName, m.Election, m.Fence, first)
}

// lostLead is the end of a process that does not lead any more.
type lostLead struct{ why error }

// Error returns why the lead was lost.
func (e *lostLead) Error() string { return "the lead is lost: " + e.why.Error() }

// CannotBegin is the end of a process that leads, but must not do the work that it was started for.
type CannotBegin struct{ Err error }

// Error returns why it must not.
func (e *CannotBegin) Error() string { return e.Err.Error() }

// Lead calls run, and returns when it ends: because ctx is done, because the lead is lost, or because
// the work cannot begin, which ends ctx with a *CannotBegin. A process that was suspended while another
// one took over does not wait until its next renewal fails: its fence ends the context.
func Lead(ctx context.Context, fence *lead.Fence, giveUp context.CancelCauseFunc, run func(context.Context) error) error {
	if fence != nil {
		go fence.Watch(ctx, func(why error) { giveUp(&lostLead{why}) })
	}
	err := run(ctx)
	if lost, ok := errors.AsType[*lostLead](context.Cause(ctx)); ok {
		return lost
	}
	if cannot, ok := errors.AsType[*CannotBegin](context.Cause(ctx)); ok {
		return cannot.Err
	}
	if over := fence.Over(); err != nil && over != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", &lostLead{over}, err)
	}
	return err
}
