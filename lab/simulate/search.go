// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"sync"
	"time"
)

// Search says which seeds to play.
type Search struct {
	First uint64
	// Seeds is how many; 0 is without end.
	Seeds int
	// For ends the search after so much real time; 0 is never.
	For time.Duration
	// Steps is how many things happen in each schedule.
	Steps int
	// Whole has all of Weir played, as it is wired, on the stage of package cluster.
	Whole bool
	// Pipelined has schedules played of many pools that change at once, with writes that overlap.
	Pipelined bool
	// Jobs is how many seeds are played at once.
	Jobs int
	// Most ends the search after so many failures; 0 is never.
	Most int
	// Progress, if set, is called after each seed, by one goroutine at a time.
	Progress func(Tally)
}

// Tally is how far a search is.
type Tally struct {
	// Done counts seeds, Steps what was played in them.
	Done, Steps int
	// Found are the seeds that failed, in the order in which they were found.
	Found []Found
}

// Found is a seed that failed, as it was played.
type Found struct {
	Seed    uint64
	Outcome Outcome
}

// Run plays the seeds until they, the time or the context end, and returns what it
// found. A seed that is being played at the end is played to its end.
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
			if ctx.Err() != nil { // before a worker that waits is asked
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
					if len(tally.Found) == s.Most || o.Check == LockUp { // what hangs still takes its share
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
