// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// processes share one Lease in an unreliable API server. Each has workers that enter, write while
// valid, and leave.
type processes struct {
	api    *apiLease
	shared []*SharedLease

	mu      sync.Mutex
	inside  []int // workers by process
	leaving []int // workers that have written and are leaving
	broken  []string
	entered int
}

// check records violated invariants. It is called after every step of a worker.
func (p *processes) check() {
	valid := 0
	for i, s := range p.shared {
		s.mu.Lock()
		if h := s.current; h != nil {
			if h.canWrite(time.Now(), s.term) {
				valid++
			}
			if h.workers < 1 || h.workers < p.inside[i] || h.workers > p.inside[i]+p.leaving[i] {
				p.broken = append(p.broken, fmt.Sprintf("%d lanes counted, %d inside and %d leaving", h.workers, p.inside[i], p.leaving[i]))
			}
		} else if p.inside[i] > 0 {
			p.broken = append(p.broken, "lanes are in, and nothing is held")
		}
		s.mu.Unlock()
	}
	if valid > 1 {
		p.broken = append(p.broken, "two processes may write at the same time")
	}
}

// lane enters and leaves until the end. A pass may last longer than the term.
func (p *processes) lane(of int, r *rand.Rand, end time.Time) {
	for time.Now().Before(end) {
		ctx, cancel := context.WithTimeout(context.Background(), within(r, 20*time.Second))
		valid, leave, err := p.shared[of].Enter(ctx)
		cancel()
		if err == nil {
			p.step(func() { p.inside[of]++; p.entered++ })
			for range r.IntN(4) {
				time.Sleep(within(r, []time.Duration{10 * time.Second, termLease}[r.IntN(2)]))
				p.step(func() {
					if others := p.api.holderNow(); valid() && others != p.name(of) {
						p.broken = append(p.broken, p.name(of)+" may write what is held by "+others)
					}
				})
			}
			p.step(func() { p.inside[of]--; p.leaving[of]++ })
			leave()
			p.step(func() { p.leaving[of]-- })
		}
		time.Sleep(within(r, []time.Duration{100 * time.Millisecond, time.Minute}[r.IntN(2)]))
	}
}

func (p *processes) name(of int) string { return string(rune('a' + of)) }

func (a *apiLease) holderNow() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.holder
}

func (p *processes) step(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func within(r *rand.Rand, d time.Duration) time.Duration {
	return rand.N(d) + time.Duration(r.Int64N(1000))
}

// Under any schedule and failures: no two processes write at the same time, the count matches the
// workers inside, every process gets the Lease, nothing is held in the end, and no goroutine leaks.
func TestNeverTwoAtOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		lanes := rapid.SliceOfN(rapid.IntRange(1, 4), 2, 3).Draw(rt, "lanes of each process")
		takes := time.Duration(rapid.IntRange(0, 6000).Draw(rt, "a request takes ms")) * time.Millisecond
		failing := rapid.IntRange(0, 40).Draw(rt, "percent fail")
		lost := rapid.Bool().Draw(rt, "they were served all the same")
		var broken []string
		synctest.Test(t, func(*testing.T) {
			r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a schedule
			api := &apiLease{takes: takes, lost: lost, down: func(string) bool { return r.IntN(100) < failing }}
			p := &processes{api: api, inside: make([]int, len(lanes)), leaving: make([]int, len(lanes))}
			for i := range lanes {
				p.shared = append(p.shared, NewSharedLease(api.as(p.name(i)), termLease, slog.New(slog.DiscardHandler)))
			}
			end := time.Now().Add(time.Hour)
			var wg sync.WaitGroup
			for i, n := range lanes {
				for k := range n {
					wg.Go(func() { p.lane(i, rand.New(rand.NewPCG(seed, uint64(100*i+k))), end) }) //nolint:gosec // a schedule
				}
			}
			for time.Now().Before(end.Add(time.Hour)) {
				time.Sleep(7 * time.Second)
				synctest.Wait()
				p.step(p.check)
			}
			wg.Wait()
			synctest.Wait()
			for i, s := range p.shared {
				if s.IsHolder() || p.inside[i] != 0 {
					p.broken = append(p.broken, "held in the end")
				}
			}
			if i := slices.IndexFunc(api.log, func(l string) bool { return strings.Contains(l, "after the end") }); i >= 0 {
				p.broken = append(p.broken, api.log[i])
			}
			if takes < requestTimeout && failing < 20 && p.entered < len(lanes) {
				p.broken = append(p.broken, "hardly anybody ever got it")
			}
			broken = p.broken
		})
		if len(broken) > 0 {
			rt.Errorf("%d laws broken: %q", len(broken), broken[:min(len(broken), 3)])
		}
	})
}
