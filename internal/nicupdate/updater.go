// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"sync"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

const (
	// gather is how long to wait for other pools of the same change, so that one write covers both
	// families and the internal load balancer.
	gather = time.Second
	// patience is how long to wait for targets after a start.
	patience   = 30 * time.Second
	nodesServe = time.Second
	leaseAgain = 10 * time.Second
	// attemptLasts keeps a hanging request from holding its slot. Azure takes a few minutes for the
	// interface of a running machine.
	attemptLasts = 10 * time.Minute
	worthTelling = 5 * time.Second
)

var (
	// polls is for waiting machines.
	polls = backoff.Doubling{First: 5 * time.Second, Max: time.Minute}
	// looks is how long a machine in sync is trusted while its unchanged pool requests it again:
	// Azure may show a pool later than its interfaces.
	looks = backoff.Doubling{First: 10 * time.Second, Max: 5 * time.Minute}
)

// Updater adds machines to pools of network interfaces and removes them. It is safe for concurrent
// use.
type Updater struct {
	cfg Config
	// wake holds one token.
	wake chan struct{}

	mu    sync.Mutex // never held during a call to Azure, the cluster or the lease
	pools map[lb.PoolKey]*pool
	lanes map[string]*lane
	// busy are scheduled or running.
	busy    map[string]*lane
	running int
	// listing maps a resource group to the worker that lists it.
	listing map[string]*lane
	// heldUntil is when to retry the lease, or when a pause for a load balancer ends.
	heldUntil time.Time
	heldWhy   string
	// settled are idle pools not yet reported.
	settled map[lb.PoolKey]lb.PoolID

	sets sets
	// handed are the pools with a target; nil once complete.
	handed map[lb.PoolKey]bool
	// plan is recomputed at staleAt or earlier if stale.
	plan    *plan
	stale   bool
	staleAt time.Time
	nodes   []nic.Node
	nodesAt time.Time
}

// New returns an Updater that accepts targets immediately and works during Run.
func New(cfg Config) *Updater {
	return &Updater{
		cfg: cfg, wake: make(chan struct{}, 1), pools: map[lb.PoolKey]*pool{}, lanes: map[string]*lane{}, busy: map[string]*lane{},
		listing: map[string]*lane{}, settled: map[lb.PoolKey]lb.PoolID{}, handed: map[lb.PoolKey]bool{},
	}
}

// Run returns once ctx is done and no attempt is running. Later results are dropped.
func (u *Updater) Run(ctx context.Context) {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	start, timer := time.Now(), time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if next := u.pass(ctx, start, attempts.Go); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		u.tell(ctx)
		select {
		case <-ctx.Done():
		case <-u.wake:
		case <-timer.C:
		}
	}
}

func (u *Updater) signal() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (u *Updater) tell(ctx context.Context) {
	u.mu.Lock()
	settled := u.settled
	u.settled = map[lb.PoolKey]lb.PoolID{}
	for key := range settled {
		if p := u.pools[key]; p == nil || p.working > 0 {
			delete(settled, key)
		}
	}
	u.mu.Unlock()
	for _, id := range settled {
		if ctx.Err() == nil {
			u.cfg.Settled(id)
		}
	}
}
