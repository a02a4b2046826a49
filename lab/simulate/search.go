// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"sync"
	"time"
)

// Search defines the seeds to run.
type Search struct {
	First uint64
	// Count is their number; 0 is unlimited.
	Count int
	// Timeout limits the search in real time; 0 is unlimited.
	Timeout time.Duration
	// Steps is the number of events per schedule.
	Steps int
	// Full runs the complete controller on the stage of package cluster.
	Full bool
	// Concurrent runs schedules with many changing pools and overlapping writes.
	Concurrent bool
	// Jobs is the number of seeds run in parallel.
	Jobs int
	// MaxFailures ends the search after this many failures; 0 is unlimited.
	MaxFailures int
	// OnProgress, if set, is called after each seed, never concurrently.
	OnProgress func(Progress)
}

// Progress is the progress of a search.
type Progress struct {
	// Done counts seeds, Steps their executed steps.
	Done, Steps int
	// Failures are the failed seeds, in order of discovery.
	Failures []FailedSeed
}

// FailedSeed is a failed seed.
type FailedSeed struct {
	Seed   uint64
	Result Result
}

// Run runs seeds until they, the time or the context end. It completes the seeds in progress.
func (s Search) Run(ctx context.Context) Progress {
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for n := 0; s.Count == 0 || n < s.Count; n++ {
			if ctx.Err() != nil { // select is random if a worker is ready, too
				return
			}
			select {
			case seeds <- s.First + uint64(n):
			case <-ctx.Done():
				return
			}
		}
	}()
	var mu sync.Mutex
	var tally Progress
	var workers sync.WaitGroup
	for range max(1, s.Jobs) {
		workers.Go(func() {
			for seed := range seeds {
				o := s.RunSeed(seed)
				mu.Lock()
				tally.Done++
				tally.Steps += len(o.Steps)
				if o.HasFailed() {
					tally.Failures = append(tally.Failures, FailedSeed{seed, o})
					if len(tally.Failures) == s.MaxFailures || o.Check == LockUp { // an abandoned bubble still uses CPU
						enough()
					}
				}
				if s.OnProgress != nil {
					s.OnProgress(tally)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return tally
}
