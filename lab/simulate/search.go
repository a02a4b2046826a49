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
	// Seeds is their number; 0 is unlimited.
	Seeds int
	// For limits the search in real time; 0 is unlimited.
	For time.Duration
	// Steps is the number of events per schedule.
	Steps int
	// Whole runs the complete controller on the stage of package cluster.
	Whole bool
	// Pipelined runs schedules with many changing pools and overlapping writes.
	Pipelined bool
	// Jobs is the number of seeds run in parallel.
	Jobs int
	// Most ends the search after this many failures; 0 is unlimited.
	Most int
	// Progress, if set, is called after each seed, never concurrently.
	Progress func(Tally)
}

// Tally is the progress of a search.
type Tally struct {
	// Done counts seeds, Steps their executed steps.
	Done, Steps int
	// Found are the failed seeds, in order of discovery.
	Found []Found
}

// Found is a failed seed.
type Found struct {
	Seed    uint64
	Outcome Outcome
}

// Run runs seeds until they, the time or the context end. It completes the seeds in progress.
func (s Search) Run(ctx context.Context) Tally {
	if s.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.For)
		defer cancel()
	}
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for n := 0; s.Seeds == 0 || n < s.Seeds; n++ {
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
	var tally Tally
	var workers sync.WaitGroup
	for range max(1, s.Jobs) {
		workers.Go(func() {
			for seed := range seeds {
				o := s.Play(seed)
				mu.Lock()
				tally.Done++
				tally.Steps += len(o.Steps)
				if o.Failed() {
					tally.Found = append(tally.Found, Found{seed, o})
					if len(tally.Found) == s.Most || o.Check == LockUp { // an abandoned bubble still uses CPU
						enough()
					}
				}
				if s.Progress != nil {
					s.Progress(tally)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return tally
}
