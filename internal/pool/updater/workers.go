// SPDX-License-Identifier: Apache-2.0

// Package updater keeps Azure backend pools in sync with the cluster. Addresses are computed from the newest snapshot when
// a pool is written, so a late operation never applies stale ones.
//
// Lock order: the worker's lock, the resource lease, the queue's lock. No call leaves the process under the queue's lock,
// and no goroutine holds two workers.
package updater

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// Config configures the workers. Lease and the fields for overlapping writes are optional.
type Config struct {
	Interval time.Duration
	// Writes tracks Azure's write quotas and the rate of changes; nil is unlimited. The client counts writes there.
	Writes     *ratelimit.Budgets
	MaxRetries int
	// ResyncPeriod is how often each pool is read without a change; 0 is never.
	ResyncPeriod time.Duration
	AdminState   bool
	Azure        Azure
	Behaviour    behavior.Behavior
	// LoadBalancers reads all pools of a load balancer at once, and rewrites Failed load balancers. If nil, neither
	// happens.
	LoadBalancers LoadBalancers
	// Pipeline starts pool writes without waiting for their ends; nil is never. It requires LoadBalancers.
	Pipeline    Pipeline
	Serial      bool
	Cluster     Cluster
	StatusStore StatusStore
	// Members writes the members of pools of network interfaces; nil leaves them unchanged.
	Members  Members
	Lease    Lease
	Reporter Reporter
	Log      *slog.Logger
}

// Workers are the workers of all load balancers. Safe for concurrent use.
type Workers struct {
	cfg Config

	coalescedCount, knownCount atomic.Uint64

	mu          sync.Mutex
	workers     map[lb.LoadBalancerKey]*worker
	startWorker func(*worker)
}

// New returns workers that accept operations at once; Run processes them.
func New(cfg Config) *Workers {
	if cfg.Writes == nil {
		cfg.Writes = ratelimit.New(ratelimit.DefaultShare, cfg.Interval)
	}
	return &Workers{cfg: cfg, workers: map[lb.LoadBalancerKey]*worker{}}
}

// Run processes operations until ctx is done, and returns after the last attempt.
func (ws *Workers) Run(ctx context.Context) {
	var running sync.WaitGroup
	ws.mu.Lock()
	ws.startWorker = func(l *worker) { running.Go(func() { l.run(ctx) }) }
	for _, l := range ws.workers {
		ws.startWorker(l)
	}
	ws.mu.Unlock()

	<-ctx.Done()
	ws.mu.Lock()
	ws.startWorker = nil
	ws.mu.Unlock()
	running.Wait()
}

// Add queues operations without blocking. A worker sees all of its operations at once.
func (ws *Workers) Add(ops ...schedule.Operation) {
	now, byWorker := time.Now(), map[*worker][]schedule.Operation{}
	var behind []lb.PoolID // their workers are busy
	ws.mu.Lock()           // held throughout, so that no worker ends in between
	for _, op := range ops {
		l := ws.getWorker(op.Pool.LoadBalancer)
		byWorker[l] = append(byWorker[l], op)
		if !op.Exempt {
			ws.cfg.Writes.RecordNamespace(l.id.SubscriptionID, op.Ref.Namespace, now)
		}
		if !op.Admin && !op.IsCheck() {
			ws.cfg.Writes.CountChange(op.Pool, op.Ref.Namespace, now)
		}
		if l.isLocked() {
			behind = append(behind, op.Pool)
		}
	}
	for l, ops := range byWorker {
		queued, sooner := l.queue.enqueue(now, ops...)
		ws.coalescedCount.Add(uint64(len(ops) - queued))
		if queued > 0 || sooner {
			l.queue.wakeWorker()
		}
	}
	ws.mu.Unlock()
	for _, pool := range behind {
		if l := ws.findWorker(pool); l != nil {
			if w, isNew := l.queue.behindWait(pool.Key()); isNew {
				ws.cfg.Reporter.ReportWait(w)
			}
		}
	}
}

func (ws *Workers) findWorker(pool lb.PoolID) *worker {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.workers[pool.LoadBalancer.Key()]
}

// RemoveService removes a Service's operations, parked ones included, and returns their number.
func (ws *Workers) RemoveService(name schedule.ServiceName) int {
	n := 0
	for _, l := range ws.listWorkers() {
		n += l.queue.removeMatching(func(op schedule.Operation) bool { return op.Service == name })
	}
	return n
}

// Resume ends the waits for Weir's own dependencies once they are ready.
func (ws *Workers) Resume() {
	for _, l := range ws.listWorkers() {
		l.queue.releaseHeld()
	}
}

// Retry makes a BackendPool's operations due with all retries, once per interval. Retry-After and pace apply.
func (ws *Workers) Retry(ref schedule.Ref) {
	for _, l := range ws.listWorkers() {
		resetRetries(l.queue, ref, time.Now())
	}
}

// Drop removes a BackendPool's operations and stops its machine writes. Retry-After is kept.
func (ws *Workers) Drop(ref schedule.Ref) {
	for _, l := range ws.listWorkers() {
		l.queue.removeMatching(func(op schedule.Operation) bool { return op.Ref == ref })
		for _, pool := range releasePools(l.queue, ref) {
			ws.cfg.Members.Forget(pool)
		}
	}
}

// Forget drops a pool with its history, and stops a worker without pools once it is idle.
func (ws *Workers) Forget(pool lb.PoolID) {
	ws.cfg.Writes.RemovePool(pool)
	if ws.cfg.Members != nil {
		ws.cfg.Members.Forget(pool)
	}
	if l := ws.findWorker(pool); l != nil {
		l.queue.removePool(pool.Key())
		ws.removeIfIdle(l)
	}
}

func (ws *Workers) removeIfIdle(l *worker) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.workers[l.id.Key()] != l || !l.queue.isEmpty() {
		return
	}
	select {
	case l.slot <- struct{}{}: // never released, so nobody else acquires it
		delete(ws.workers, l.id.Key())
		close(l.stopped)
	default:
	}
}

// IsInSync reports whether a pool is known to hold this membership, and nothing pending could change it.
func (ws *Workers) IsInSync(pool lb.PoolID, fingerprint uint64) bool {
	l := ws.findWorker(pool)
	if l == nil || !l.queue.isInSync(pool.Key(), fingerprint) {
		return false
	}
	ws.knownCount.Add(1)
	return true
}

// Lock excludes pool writes of a load balancer until unlock. The holder passes pools to StagePools.
func (ws *Workers) Lock(ctx context.Context, id lb.LoadBalancerID) (unlock func(), err error) {
	for {
		ws.mu.Lock()
		l := ws.getWorker(id)
		ws.mu.Unlock()
		switch err := l.lock(ctx); {
		case err == nil:
			return func() { l.unlock(); ws.removeIfIdle(l) }, nil
		case !errors.Is(err, errWorkerStopped):
			return nil, err
		}
	}
}

// Backlog returns what waits now, in O(pools).
func (ws *Workers) Backlog() Backlog {
	var b Backlog
	now := time.Now()
	for _, l := range ws.listWorkers() {
		b = l.queue.addBacklog(b, now)
	}
	return b
}

// CountAvoided counts operations that cost nothing: coalesced ones, and those for pools in sync.
func (ws *Workers) CountAvoided() (coalesced, known uint64) {
	return ws.coalescedCount.Load(), ws.knownCount.Load()
}

// CountSerial counts the load balancers where pool writes do not overlap now.
func (ws *Workers) CountSerial() (n int) {
	for _, l := range ws.listWorkers() {
		if l.isSerial.Load() {
			n++
		}
	}
	return n
}

// getWorker returns the worker of a load balancer, started if new. The caller holds ls.mu.
func (ws *Workers) getWorker(id lb.LoadBalancerID) *worker {
	l := ws.workers[id.Key()]
	if l == nil {
		l = newWorker(id, &ws.cfg)
		l.removeIfIdle = func() { ws.removeIfIdle(l) }
		ws.workers[id.Key()] = l
		if ws.startWorker != nil {
			ws.startWorker(l)
		}
	}
	return l
}

func (ws *Workers) listWorkers() []*worker {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Collect(maps.Values(ws.workers))
}

// StagePools returns the pools for a write of the whole load balancer. New pools, which have no etag, are made empty:
// Azure was seen to ignore existing pools in such a write, and to create new ones empty. The caller holds Lock, also
// when it calls written with the pools after the write, or with nil if the write failed or was not sent; mayLand is then
// true if it may still take effect.
func (ws *Workers) StagePools(id lb.LoadBalancerID, pools []lb.Pool) (next []lb.Pool, written func(shown []lb.Pool, mayLand bool)) {
	ws.mu.Lock()
	l := ws.getWorker(id)
	ws.mu.Unlock()
	next = slices.Clone(pools)
	var created []lb.PoolKey
	for i, p := range next {
		if p.Etag == "" {
			next[i].Addresses = nil
			created = append(created, l.poolKey(p))
		}
	}
	return next, func(shown []lb.Pool, mayLand bool) {
		switch {
		case shown != nil:
			var empty []lb.PoolKey
			for _, p := range shown {
				if len(p.Addresses) == 0 {
					empty = append(empty, l.poolKey(p))
				}
			}
			l.queue.fillPools(empty, func(w *poolEntry) bool { return w.syncedFingerprint == nil && len(w.ops) == 0 && !w.inFlight }) // a lost write has created it
			l.queue.fillPools(created, func(*poolEntry) bool { return true })
		case mayLand: // pools known to be missing are handled elsewhere
			l.queue.fillPools(created, func(w *poolEntry) bool { return w.syncedFingerprint != nil })
		}
	}
}

// fillPools fills pools that a write has created empty. Nothing else shows that a pool was recreated.
func (q *queue) fillPools(created []lb.PoolKey, match func(*poolEntry) bool) {
	q.mu.Lock()
	for _, key := range created {
		if w := q.pools[key]; w != nil && match(w) {
			w.syncedFingerprint = nil
			q.setOps(key, w, schedule.MergeOperations(w.ops, w.subject.NewFill(time.Now())))
		}
	}
	q.mu.Unlock()
	q.wakeWorker()
}
