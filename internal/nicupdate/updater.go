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
	// gather is how long a resource waits for the other pools that a change concerns, so that all
	// that a machine joins and leaves is one write: both families, and the internal twin.
	gather = time.Second
	// patience is how long the pools are waited for after a start that nobody hands over.
	patience = 30 * time.Second
	// nodesServe is how long what the cluster has said of its machines is good for.
	nodesServe = time.Second
	// leaseAgain is when the lease is asked for again after somebody else had it.
	leaseAgain = 10 * time.Second
	// attemptLasts bounds one attempt, so that what hangs gives its place away. Azure takes a few
	// minutes for an interface of a machine in service.
	attemptLasts = 10 * time.Minute
	// worthTelling is the shortest closing of a gate that people hear of.
	worthTelling = 5 * time.Second
)

var (
	// polls are when something that is waited for is looked at again.
	polls = backoff.Doubling{First: 5 * time.Second, Max: time.Minute}
	// looks are how long what was found to be right is believed, though a pool that has not changed
	// is handed over as if it were not: Azure may show a pool later than its interfaces.
	looks = backoff.Doubling{First: 10 * time.Second, Max: 5 * time.Minute}
)

// Updater has machines join pools of network interfaces, and leave them. Its methods may be called
// from any goroutine, at any time.
type Updater struct {
	cfg Config
	// wake has room for one token: something may be due.
	wake chan struct{}

	mu    sync.Mutex // never held across a call to Azure, the cluster or the lease
	pools map[lb.PoolKey]*pool
	lanes map[string]*lane
	// busy are the lanes that have something to do or do it.
	busy    map[string]*lane
	running int
	// listing are the resource groups whose interfaces are listed, each with the lane that does.
	listing map[string]*lane
	// heldUntil is when the lease is asked for again that somebody else had, or until when machines wait
	// for a load balancer.
	heldUntil time.Time
	heldWhy   string
	// settled are pools of which nothing is under way any more, and who is not told of it yet.
	settled map[lb.PoolKey]lb.PoolID

	sets sets
	// handed are the pools that were handed over; nil when all were that had to be.
	handed map[lb.PoolKey]bool
	// plan is of all pools and nodes, unless it is stale; then it is made anew at staleAt, or before.
	plan    *plan
	stale   bool
	staleAt time.Time
	nodes   []nic.Node
	nodesAt time.Time
}

// New returns an Updater that takes pools at once and works on their machines during Run.
func New(cfg Config) *Updater {
	return &Updater{
		cfg: cfg, wake: make(chan struct{}, 1), pools: map[lb.PoolKey]*pool{}, lanes: map[string]*lane{}, busy: map[string]*lane{},
		listing: map[string]*lane{}, settled: map[lb.PoolKey]lb.PoolID{}, handed: map[lb.PoolKey]bool{},
	}
}

// Run works until the context is done, and returns when no attempt is under way any more. Nobody is
// told of what those have found.
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

// signal has Run look what is due.
func (u *Updater) signal() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// tell says of pools that nothing of them is under way any more, unless something is again.
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
