// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
)

// leading is what only the leader runs, besides the controllers: the manager starts it
// when it leads and the caches are filled, and releases the lead after its end.
type leading struct {
	runs   []func(ctx context.Context) // the lanes, and what else writes to Azure
	last   func()                      // what they have left to tell
	events *eventQueue
}

// Start implements manager.Runnable. Events are written to the end of the last attempt and
// a little longer. The manager would stop first what needs no leader, and an event of an
// attempt that settles meanwhile would be lost.
func (l leading) Start(ctx context.Context) error {
	untilTheyEnd, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var writer sync.WaitGroup
	writer.Go(func() { l.events.run(untilTheyEnd) })
	var running sync.WaitGroup
	for _, run := range l.runs {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
	l.last()
	end()
	writer.Wait()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (leading) NeedLeaderElection() bool { return true }
