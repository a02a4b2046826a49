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
	// Count: 0 is unlimited.
	Count int
	// Timeout limits real time; 0 is unlimited.
	Timeout time.Duration
	// Steps is the number of events per schedule.
	Steps int
	// Full runs the complete controller.
	Full bool
	// Concurrent runs schedules with overlapping writes.
	Concurrent bool
	// Jobs run in parallel.
	Jobs int
	// MaxFailures limits the failures; 0 is unlimited.
	MaxFailures int
	// OnProgress, if set, is never called concurrently.
	OnProgress func(Progress)
}

// Progress is the progress of a search.
type Progress struct {
	Done, Steps int
	Failures    []FailedSeed
}

// FailedSeed is a failed seed.
type FailedSeed struct {
	Seed   uint64
	Result Result
}

// Run completes the seeds in progress when the time or context ends.
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
