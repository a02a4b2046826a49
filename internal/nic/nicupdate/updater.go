// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/ratelimit"
)

const (
	// batchDelay is how long to wait for other pools of the same change, so that one write covers both
	// families and the internal load balancer.
	batchDelay = time.Second
	// startupTimeout is how long to wait for targets after a start.
	startupTimeout  = 30 * time.Second
	nodesTTL        = time.Second
	leaseRetryDelay = 10 * time.Second
	// attemptTimeout keeps a hanging request from holding its slot. Azure takes a few minutes for the
	// interface of a running machine.
	attemptTimeout   = 10 * time.Minute
	minReportedDelay = 5 * time.Second
)

var (
	// pollBackoff is for waiting machines.
	pollBackoff = ratelimit.Exponential{Initial: 5 * time.Second, Max: time.Minute}
	// readBackoff is how long a machine in sync is trusted while its unchanged pool requests it again:
	// Azure may show a pool later than its interfaces.
	readBackoff = ratelimit.Exponential{Initial: 10 * time.Second, Max: 5 * time.Minute}
)

// Updater adds machines to pools of network interfaces and removes them. It is safe for concurrent
// use.
type Updater struct {
	cfg Config
	// wake holds one token.
	wake chan struct{}

	mu      sync.Mutex // never held during a call to Azure, the cluster or the lease
	pools   map[lb.PoolKey]*pool
	workers map[string]*worker
	// activeWorkers are scheduled or running.
	activeWorkers map[string]*worker
	runningCount  int
	// listingGroups maps a resource group to the worker that lists it.
	listingGroups map[string]*worker
	// blockedUntil is when to retry the lease, or when a pause for a load balancer ends.
	blockedUntil  time.Time
	blockedReason string
	// idlePools are idle pools not yet reported.
	idlePools map[lb.PoolKey]lb.PoolID

	scaleSets scaleSetCache
	// knownTargets are the pools with a target; nil once complete.
	knownTargets map[lb.PoolKey]bool
	// plan is recomputed at planDueAt or earlier if stale.
	plan        *plan
	planStale   bool
	planDueAt   time.Time
	nodes       []nic.Node
	nodesReadAt time.Time
}

// New returns an Updater that accepts targets immediately and works during Run.
func New(cfg Config) *Updater {
	return &Updater{
		cfg: cfg, wake: make(chan struct{}, 1), pools: map[lb.PoolKey]*pool{}, workers: map[string]*worker{}, activeWorkers: map[string]*worker{},
		listingGroups: map[string]*worker{}, idlePools: map[lb.PoolKey]lb.PoolID{}, knownTargets: map[lb.PoolKey]bool{},
	}
}

// Run returns once ctx is done and no attempt is running. Later results are dropped.
func (u *Updater) Run(ctx context.Context) {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	start, timer := time.Now(), time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if next := u.startDue(ctx, start, attempts.Go); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		u.notifyIdle(ctx)
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

func (u *Updater) notifyIdle(ctx context.Context) {
	u.mu.Lock()
	settled := u.idlePools
	u.idlePools = map[lb.PoolKey]lb.PoolID{}
	for key := range settled {
		if p := u.pools[key]; p == nil || p.workingCount > 0 {
			delete(settled, key)
		}
	}
	u.mu.Unlock()
	for _, id := range settled {
		if ctx.Err() == nil {
			u.cfg.OnPoolIdle(id)
		}
	}
}
