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

// NewFence returns the fence that stops writes after leadership is lost; nil without leader election.
func NewFence(o Options) *lead.Fence {
	if !o.LeaderElect {
		return nil
	}
	return lead.NewFence(o.Election.RenewDeadline, elapsed(sinceStart, time.Now))
}

// newLock returns the election lock, which reports renewals to the fence; nil without leader election.
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

type lostLead struct{ why error }

// Error returns why the lead was lost.
func (e *lostLead) Error() string { return "the lead is lost: " + e.why.Error() }

// CannotBegin is returned by a leader that must not start its work.
type CannotBegin struct{ Err error }

// Error returns the reason.
func (e *CannotBegin) Error() string { return e.Err.Error() }

// Lead calls run and returns when it ends: ctx is done, leadership is lost, or the work cannot begin (a
// *CannotBegin as cause of ctx). The fence ends ctx for a process that was suspended while another took over,
// before its next renewal fails.
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
