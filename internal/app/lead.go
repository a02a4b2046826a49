// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"weir.dev/weir/internal/kube/leases"
	"weir.dev/weir/internal/lead"
)

// newFence returns what keeps this process from writing once it leads no more; nil without
// an election.
func newFence(o Options) *lead.Fence {
	if !o.LeaderElect {
		return nil
	}
	return lead.NewFence(o.Election.RenewDeadline, elapsed(sinceStart, time.Now))
}

// newLock returns the lock of the leader's election, which tells the fence; nil without an
// election. First is what a leader does before all else.
func newLock(ctx context.Context, o Options, rc *rest.Config, namespace string, fence *lead.Fence, first func(context.Context) error) (resourcelock.Interface, error) {
	if !o.LeaderElect {
		return nil, nil
	}
	return leases.NewLeaderLock(ctx, rc, namespace, LeaseName, o.Election, fence, first)
}

// lostLead is the end of a process that does not lead any more.
type lostLead struct{ why error }

// Error says why the lead was lost.
func (e *lostLead) Error() string { return "the lead is lost: " + e.why.Error() }

// cannotBegin is the end of a process that has the lead, and may not do with it what it was
// started for.
type cannotBegin struct{ error }

// leading runs until the context is done, the lead is lost, which ends the context with a
// *lostLead, or cannot begin, which ends it with a *cannotBegin. Who was stopped while another took over does not wait until its next renewal
// fails: nothing that it does has any effect.
func leading(ctx context.Context, fence *lead.Fence, giveUp context.CancelCauseFunc, run func(context.Context) error) error {
	if fence != nil {
		go fence.Watch(ctx, func(why error) { giveUp(&lostLead{why}) })
	}
	err := run(ctx)
	if lost, ok := errors.AsType[*lostLead](context.Cause(ctx)); ok {
		return lost
	}
	if cannot, ok := errors.AsType[*cannotBegin](context.Cause(ctx)); ok {
		return cannot.error
	}
	if over := fence.Over(); err != nil && over != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", &lostLead{over}, err)
	}
	return err
}
