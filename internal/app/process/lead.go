// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/leader"
)

// NewFence returns the fence that stops writes after leadership is lost; nil without leader election.
func NewFence(o Options) *leader.Fence {
	if !o.LeaderElect {
		return nil
	}
	return leader.NewFence(o.Election.RenewDeadline, newElapsedClock(sinceStart, time.Now))
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
	annotations := map[string]string{k8s.VersionAnnotation: Version}
	maps.Copy(annotations, m.LeaseAnnotations)
	lease := metav1.ObjectMeta{Namespace: m.LeaseNamespace, Name: m.LeaseName, Annotations: annotations}
	return k8s.NewLeaderLock(ctx, m.API, lease, m.Election, m.Fence, first)
}

type leadershipLost struct{ cause error }

// Error returns why the lead was lost.
func (e *leadershipLost) Error() string { return "the lead is lost: " + e.cause.Error() }

// StartError is returned by a leader that must not start its work.
type StartError struct{ Err error }

// Error returns the reason.
func (e *StartError) Error() string { return e.Err.Error() }

// RunAsLeader calls run and returns when it ends: ctx is done, leadership is lost, or the work cannot begin (a
// *StartError as cause of ctx). The fence ends ctx for a process that was suspended while another took over,
// before its next renewal fails.
func RunAsLeader(ctx context.Context, fence *leader.Fence, cancel context.CancelCauseFunc, run func(context.Context) error) error {
	if fence != nil {
		go fence.Watch(ctx, func(cause error) { cancel(&leadershipLost{cause}) })
	}
	err := run(ctx)
	if lost, ok := errors.AsType[*leadershipLost](context.Cause(ctx)); ok {
		return lost
	}
	if cannot, ok := errors.AsType[*StartError](context.Cause(ctx)); ok {
		return cannot.Err
	}
	if over := fence.EndReason(); err != nil && over != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", &leadershipLost{over}, err)
	}
	return err
}
