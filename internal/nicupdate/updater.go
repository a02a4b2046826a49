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
	// gather is how long a resource waits for the other pools of the same change, so that one write
	// covers both families and the internal load balancer.
	gather = time.Second
	// patience is how long to wait after a start for pools that get no target.
	patience = 30 * time.Second
	// nodesServe is how long a snapshot of the cluster's machines is valid.
	nodesServe = time.Second
	// leaseAgain is the delay before retrying a lease that is held elsewhere.
	leaseAgain = 10 * time.Second
	// attemptLasts bounds one attempt, so that a hanging request frees its slot. Azure takes a few
	// minutes for the interface of a running machine.
	attemptLasts = 10 * time.Minute
	// worthTelling is the shortest wait for admission that is reported.
	worthTelling = 5 * time.Second
)

var (
	// polls is the delay between reads of a waiting machine.
	polls = backoff.Doubling{First: 5 * time.Second, Max: time.Minute}
	// looks is how long a machine found in sync is trusted while its unchanged pool keeps
	// requesting it: Azure may show a pool later than its interfaces.
	looks = backoff.Doubling{First: 10 * time.Second, Max: 5 * time.Minute}
)

// Updater adds machines to pools of network interfaces and removes them. Its methods are safe for
// concurrent use.
type Updater struct {
	cfg Config
	// wake holds one token: something may be due.
	wake chan struct{}

	mu    sync.Mutex // never held during a call to Azure, the cluster or the lease
	pools map[lb.PoolKey]*pool
	lanes map[string]*lane
	// busy are the workers that are scheduled or running.
	busy    map[string]*lane
	running int
	// listing are the resource groups being listed, each with the worker that does it.
	listing map[string]*lane
	// heldUntil is when to retry the lease held elsewhere, or until when writes are paused for a
	// load balancer.
	heldUntil time.Time
	heldWhy   string
	// settled are pools that have become idle and are not notified yet.
	settled map[lb.PoolKey]lb.PoolID

	sets sets
	// handed are the pools with a target; nil once all required ones have one.
	handed map[lb.PoolKey]bool
	// plan covers all pools and nodes. If stale, it is recomputed at staleAt or earlier.
	plan    *plan
	stale   bool
	staleAt time.Time
	nodes   []nic.Node
	nodesAt time.Time
}

// New returns an Updater. It accepts pools immediately and updates their machines during Run.
func New(cfg Config) *Updater {
	return &Updater{
		cfg: cfg, wake: make(chan struct{}, 1), pools: map[lb.PoolKey]*pool{}, lanes: map[string]*lane{}, busy: map[string]*lane{},
		listing: map[string]*lane{}, settled: map[lb.PoolKey]lb.PoolID{}, handed: map[lb.PoolKey]bool{},
	}
}

// Run works until ctx is done and returns once no attempt is running. Results of attempts that end
// after that are not reported.
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

// signal wakes Run.
func (u *Updater) signal() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// tell notifies idle pools, unless they are working again.
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
