// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/poolattempt"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/verdicts"
	"weir.dev/weir/internal/wholewrite"
)

// Config configures the workers. Lease, and the fields for load balancer writes, are optional.
type Config struct {
	// Interval is the time between retries, and the longest wait of a busy pool.
	Interval time.Duration
	// Writes tracks Azure's write quotas and the rate of changes; nil is unlimited. The client that
	// sends writes counts them there.
	Writes *pace.Budgets
	// MaxRetries is per operation; 0 disables retries.
	MaxRetries int
	// DriftPeriod is how often each pool is read without a change; 0 is never.
	DriftPeriod time.Duration
	// AdminState enables management of admin states.
	AdminState bool
	Azure      Azure
	// Behaviour is what is known of Azure.
	Behaviour behaviour.Behaviour
	// Whole writes load balancers with all their pools, if the next field allows it; nil is never.
	Whole       poolattempt.Balancers
	WholeWrites wholewrite.Setting
	// Pipeline starts pool writes without waiting for completion, if the next field allows it; nil
	// is never. It also requires the client for load balancers.
	Pipeline  Pipeline
	Pipelined wholewrite.Setting
	// Verdicts persists what was learned about these writes, with Weir's Version; nil is in memory
	// only.
	Verdicts verdicts.Store
	Version  string
	Cluster  Cluster
	Ledger   poolattempt.Ledger
	// Members writes the members of pools of network interfaces; nil leaves them unchanged.
	Members Members
	// Lease excludes other controllers; nil is none.
	Lease    Lease
	Reporter Reporter
	Log      *slog.Logger
}

// Lanes are the workers of all load balancers. Safe for concurrent use.
type Lanes struct {
	cfg Config

	coalesced, known atomic.Uint64

	verdicts *verdicts.Verdicts

	mu    sync.Mutex
	lanes map[lb.LoadBalancerKey]*lane
	// start runs a worker; nil unless Run is active.
	start func(*lane)
}

// New returns workers that accept operations at once; Run processes them.
func New(cfg Config) *Lanes {
	if cfg.Writes == nil {
		cfg.Writes = pace.New(pace.DefaultShare, cfg.Interval)
	}
	ls := &Lanes{cfg: cfg, lanes: map[lb.LoadBalancerKey]*lane{}}
	ls.verdicts = verdicts.New(verdicts.Config{
		Setting: cfg.WholeWrites, Pipelined: pipelined(cfg), Probed: cfg.Behaviour, Store: cfg.Verdicts, Version: cfg.Version, Interval: cfg.Interval, Log: cfg.Log,
	})
	return ls
}

func pipelined(cfg Config) wholewrite.Setting {
	if cfg.Pipeline == nil {
		return wholewrite.Never
	}
	return cfg.Pipelined
}

// Run processes operations until ctx is done, and returns after the last attempt. Queued operations
// are dropped.
func (ls *Lanes) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { ls.verdicts.Run(ctx) })
	ls.mu.Lock()
	ls.start = func(l *lane) { running.Go(func() { l.run(ctx) }) }
	for _, l := range ls.lanes {
		ls.start(l)
	}
	ls.mu.Unlock()

	<-ctx.Done()
	ls.mu.Lock()
	ls.start = nil
	ls.mu.Unlock()
	running.Wait()
}

// Add queues operations without blocking. A worker sees all of its operations at once.
func (ls *Lanes) Add(ops ...poolschedule.Operation) {
	now, byWorker := time.Now(), map[*lane][]poolschedule.Operation{}
	var behind []lb.PoolID // their workers are busy
	ls.mu.Lock()           // held throughout, so that no worker ends in between
	for _, op := range ops {
		l := ls.lane(op.Pool.LoadBalancer)
		byWorker[l] = append(byWorker[l], op)
		if !op.Exempt {
			ls.cfg.Writes.See(l.id.SubscriptionID, op.Ref.Namespace, now)
		}
		if !op.Admin && !op.Looks() {
			ls.cfg.Writes.Changed(paced(l, op.Pool, now), op.Ref.Namespace, now)
		}
		if l.busy() {
			behind = append(behind, op.Pool)
		}
	}
	for l, its := range byWorker {
		queued, sooner := l.queue.add(now, its...)
		ls.coalesced.Add(uint64(len(its) - queued))
		if queued > 0 || sooner {
			l.queue.signal()
		}
	}
	ls.mu.Unlock()
	for _, pool := range behind {
		ls.tellBehind(pool)
	}
}

func (ls *Lanes) tellBehind(pool lb.PoolID) {
	ls.mu.Lock()
	l := ls.lanes[pool.LoadBalancer.Key()]
	ls.mu.Unlock()
	if l == nil {
		return
	}
	if w, tell := l.queue.behind(pool.Key()); tell {
		ls.cfg.Reporter.Wait(w)
	}
}

// RemoveService removes a Service's operations, parked ones included, and returns their number.
func (ls *Lanes) RemoveService(name poolschedule.ServiceName) int {
	n := 0
	for _, l := range ls.all() {
		n += l.queue.remove(func(op poolschedule.Operation) bool { return op.Service == name })
	}
	return n
}

// Resume ends the waits for Weir's own dependencies once they are ready.
func (ls *Lanes) Resume() {
	for _, l := range ls.all() {
		l.queue.resume()
	}
}

// Retry makes a BackendPool's operations due with all retries left, at most once per interval.
// Retry-After and pace still apply.
func (ls *Lanes) Retry(ref poolschedule.Ref) {
	for _, l := range ls.all() {
		afresh(l.queue, ref, time.Now())
	}
}

// Drop removes a BackendPool's operations and stops its machine writes. Retry-After is kept.
func (ls *Lanes) Drop(ref poolschedule.Ref) {
	for _, l := range ls.all() {
		l.queue.remove(func(op poolschedule.Operation) bool { return op.Ref == ref })
		for _, pool := range letGo(l.queue, ref) {
			ls.cfg.Members.Forget(pool)
		}
	}
}

// Forget drops a pool with its history, and stops a worker without pools once it is idle.
func (ls *Lanes) Forget(pool lb.PoolID) {
	ls.mu.Lock()
	l := ls.lanes[pool.LoadBalancer.Key()]
	ls.mu.Unlock()
	ls.cfg.Writes.Forget(pool)
	if ls.cfg.Members != nil {
		ls.cfg.Members.Forget(pool)
	}
	if l != nil {
		l.queue.forget(pool.Key())
		ls.reap(l)
	}
}

// reap stops an idle worker without pools.
func (ls *Lanes) reap(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.lanes[l.id.Key()] != l || !l.queue.empty() {
		return
	}
	select {
	case l.slot <- struct{}{}: // never released, so nobody else acquires it
		delete(ls.lanes, l.id.Key())
		close(l.ended)
	default:
	}
}

// LevelAs reports whether a pool is known to hold the membership with this fingerprint, and nothing
// pending could change it.
func (ls *Lanes) LevelAs(pool lb.PoolID, fingerprint uint64) bool {
	ls.mu.Lock()
	l := ls.lanes[pool.LoadBalancer.Key()]
	ls.mu.Unlock()
	if l == nil || !l.queue.levelAs(pool.Key(), fingerprint) {
		return false
	}
	ls.known.Add(1)
	return true
}

// Lock excludes pool writes of a load balancer until unlock is called. The holder passes pools to
// Carry.
func (ls *Lanes) Lock(ctx context.Context, id lb.LoadBalancerID) (unlock func(), err error) {
	for {
		ls.mu.Lock()
		l := ls.lane(id)
		ls.mu.Unlock()
		switch err := l.lock(ctx); {
		case err == nil:
			return func() { l.unlock(); ls.reap(l) }, nil
		case !errors.Is(err, errEnded):
			return nil, err
		}
	}
}

// Backlog returns what waits now, in O(pools).
func (ls *Lanes) Backlog() Backlog {
	var b Backlog
	now := time.Now()
	for _, l := range ls.all() {
		b = l.queue.backlog(b, now)
	}
	return b
}

// Avoided counts operations that cost nothing: coalesced ones, and those for pools known to be in
// sync.
func (ls *Lanes) Avoided() (coalesced, known uint64) {
	return ls.coalesced.Load(), ls.known.Load()
}

// WholeWrites counts subscriptions by change and capability, once the record was read. own is the
// cluster's subscription.
func (ls *Lanes) WholeWrites(own string) map[[2]string]int { return ls.verdicts.Count(own) }

// lane returns the worker of a load balancer, started if new. The caller holds ls.mu.
func (ls *Lanes) lane(id lb.LoadBalancerID) *lane {
	l := ls.lanes[id.Key()]
	if l == nil {
		l = newLane(id, &ls.cfg, ls.verdicts)
		l.reap = func() { ls.reap(l) }
		ls.lanes[id.Key()] = l
		if ls.start != nil {
			ls.start(l)
		}
	}
	return l
}

func (ls *Lanes) all() []*lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all := make([]*lane, 0, len(ls.lanes))
	for _, l := range ls.lanes {
		all = append(all, l)
	}
	return all
}
