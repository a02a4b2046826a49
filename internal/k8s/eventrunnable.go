// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"sync"
)

// EventRunnable is the work of the leader in addition to the controllers. The manager releases
// leadership after it ends.
type EventRunnable struct {
	// First runs to completion before Runs start; may be nil.
	First func(ctx context.Context)
	// Runs are the workers and everything else that writes to Azure.
	Runs []func(ctx context.Context)
	// Last runs after Runs have ended.
	Last func()
	// Events are written until Last has returned.
	Events *EventQueue
}

// Start implements manager.Runnable. It runs the event writer, too, because the manager would stop
// that first and lose events of the last attempts.
func (r EventRunnable) Start(ctx context.Context) error {
	untilTheyEnd, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var writer sync.WaitGroup
	writer.Go(func() { r.Events.Run(untilTheyEnd) })
	if r.First != nil {
		r.First(ctx)
	}
	var running sync.WaitGroup
	for _, run := range r.Runs {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
	r.Last()
	end()
	writer.Wait()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (EventRunnable) NeedLeaderElection() bool { return true }
