// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"sync"
)

// Runnable is what only the leader runs, besides the controllers: the manager starts it
// when it leads and the caches are filled, and releases the lead after its end.
type Runnable struct {
	// First comes to its end before any of Runs begins; nil is nothing.
	First func(ctx context.Context)
	// Runs are the lanes, and what else writes to Azure.
	Runs []func(ctx context.Context)
	// Last puts the events that they have left.
	Last func()
	// Events are written to the end of both.
	Events *Queue
}

// Start implements manager.Runnable. Events are written to the end of the last attempt and
// a little longer. The manager would stop first what needs no leader, and an event of an
// attempt that settles meanwhile would be lost.
func (r Runnable) Start(ctx context.Context) error {
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
func (Runnable) NeedLeaderElection() bool { return true }
