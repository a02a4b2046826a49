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
	// ResyncPeriod is how often each pool is read without a change; 0 disables it.
	ResyncPeriod time.Duration
	AdminState   bool
	Azure        Azure
	Behaviour    behavior.Behavior
	// LoadBalancers reads all pools of a load balancer at once, and rewrites Failed load balancers. If nil, it does
	// neither.
	LoadBalancers LoadBalancers
	// Pipeline starts pool writes without waiting for their ends; nil disables this. It requires LoadBalancers.
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
	ws.startWorker = func(w *worker) { running.Go(func() { w.run(ctx) }) }
	for _, w := range ws.workers {
		ws.startWorker(w)
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
		w := ws.getWorker(op.Pool.LoadBalancer)
		byWorker[w] = append(byWorker[w], op)
		if !op.Exempt {
			ws.cfg.Writes.RecordNamespace(w.id.SubscriptionID, op.Ref.Namespace, now)
		}
		if !op.Admin && !op.IsCheck() {
			ws.cfg.Writes.CountChange(op.Pool, op.Ref.Namespace, now)
		}
		if w.isLocked() {
			behind = append(behind, op.Pool)
		}
	}
	for w, ops := range byWorker {
		queued, sooner := w.queue.enqueue(now, ops...)
		ws.coalescedCount.Add(uint64(len(ops) - queued))
		if queued > 0 || sooner {
			w.queue.wakeWorker()
		}
	}
	ws.mu.Unlock()
	for _, pool := range behind {
		if w := ws.findWorker(pool); w != nil {
			if wait, isNew := w.queue.behindWait(pool.Key()); isNew {
				ws.cfg.Reporter.ReportWait(wait)
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
	for _, w := range ws.listWorkers() {
		n += w.queue.removeMatching(func(op schedule.Operation) bool { return op.Service == name })
	}
	return n
}

// Resume ends the waits for Weir's own dependencies once they are ready.
func (ws *Workers) Resume() {
	for _, w := range ws.listWorkers() {
		w.queue.releaseHeld()
	}
}

// Retry makes a BackendPool's operations due with all retries, once per interval. Retry-After and pace apply.
func (ws *Workers) Retry(ref schedule.Ref) {
	for _, w := range ws.listWorkers() {
		resetRetries(w.queue, ref, time.Now())
	}
}

// Drop removes a BackendPool's operations and stops its machine writes. Retry-After is kept.
func (ws *Workers) Drop(ref schedule.Ref) {
	for _, w := range ws.listWorkers() {
		w.queue.removeMatching(func(op schedule.Operation) bool { return op.Ref == ref })
		for _, pool := range releasePools(w.queue, ref) {
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
	if w := ws.findWorker(pool); w != nil {
		w.queue.removePool(pool.Key())
		ws.removeIfIdle(w)
	}
}

func (ws *Workers) removeIfIdle(w *worker) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.workers[w.id.Key()] != w || !w.queue.isEmpty() {
		return
	}
	select {
	case w.slot <- struct{}{}: // never released, so nobody else acquires it
		delete(ws.workers, w.id.Key())
		close(w.stopped)
	default:
	}
}

// IsInSync reports whether a pool is known to hold this membership, and nothing pending could change it.
func (ws *Workers) IsInSync(pool lb.PoolID, fingerprint uint64) bool {
	w := ws.findWorker(pool)
	if w == nil || !w.queue.isInSync(pool.Key(), fingerprint) {
		return false
	}
	ws.knownCount.Add(1)
	return true
}

// Lock excludes pool writes of a load balancer until unlock. The holder passes pools to StagePools.
func (ws *Workers) Lock(ctx context.Context, id lb.LoadBalancerID) (unlock func(), err error) {
	for {
		ws.mu.Lock()
		w := ws.getWorker(id)
		ws.mu.Unlock()
		switch err := w.lock(ctx); {
		case err == nil:
			return func() { w.unlock(); ws.removeIfIdle(w) }, nil
		case !errors.Is(err, errWorkerStopped):
			return nil, err
		}
	}
}

// Backlog returns what waits now, in O(pools).
func (ws *Workers) Backlog() Backlog {
	var b Backlog
	now := time.Now()
	for _, w := range ws.listWorkers() {
		b = w.queue.addBacklog(b, now)
	}
	return b
}

// CountAvoided counts operations that cost nothing: coalesced ones, and those for pools in sync.
func (ws *Workers) CountAvoided() (coalesced, known uint64) {
	return ws.coalescedCount.Load(), ws.knownCount.Load()
}

// CountSerial counts the load balancers where pool writes do not overlap now.
func (ws *Workers) CountSerial() (n int) {
	for _, w := range ws.listWorkers() {
		if w.isSerial.Load() {
			n++
		}
	}
	return n
}

// getWorker returns the worker of a load balancer, started if new. The caller holds ws.mu.
func (ws *Workers) getWorker(id lb.LoadBalancerID) *worker {
	w := ws.workers[id.Key()]
	if w == nil {
		w = newWorker(id, &ws.cfg)
		w.removeIfIdle = func() { ws.removeIfIdle(w) }
		ws.workers[id.Key()] = w
		if ws.startWorker != nil {
			ws.startWorker(w)
		}
	}
	return w
}

func (ws *Workers) listWorkers() []*worker {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Collect(maps.Values(ws.workers))
}

// StagePools returns the pools for a write of the whole load balancer. New pools, which have no etag, are sent empty:
// Azure ignores existing pools in such a write, and creates new ones empty. After the write the caller calls written
// with the pools that Azure shows. If the write failed or was not sent, shown is nil, and mayLand is true if the write
// may still take effect. The caller holds Lock during both calls.
func (ws *Workers) StagePools(id lb.LoadBalancerID, pools []lb.Pool) (next []lb.Pool, written func(shown []lb.Pool, mayLand bool)) {
	ws.mu.Lock()
	w := ws.getWorker(id)
	ws.mu.Unlock()
	next = slices.Clone(pools)
	var created []lb.PoolKey
	for i, p := range next {
		if p.Etag == "" {
			next[i].Addresses = nil
			created = append(created, w.poolKey(p))
		}
	}
	return next, func(shown []lb.Pool, mayLand bool) {
		switch {
		case shown != nil:
			var empty []lb.PoolKey
			for _, p := range shown {
				if len(p.Addresses) == 0 {
					empty = append(empty, w.poolKey(p))
				}
			}
			w.queue.fillPools(empty, func(p *poolEntry) bool { return p.syncedFingerprint == nil && len(p.ops) == 0 && !p.inFlight }) // a lost write has created it
			w.queue.fillPools(created, func(*poolEntry) bool { return true })
		case mayLand: // pools known to be missing are handled elsewhere
			w.queue.fillPools(created, func(p *poolEntry) bool { return p.syncedFingerprint != nil })
		}
	}
}

// fillPools fills pools that a write has created empty. Nothing else shows that a pool was recreated.
func (q *queue) fillPools(created []lb.PoolKey, match func(*poolEntry) bool) {
	q.mu.Lock()
	for _, key := range created {
		if p := q.pools[key]; p != nil && match(p) {
			p.syncedFingerprint = nil
			q.setOps(key, p, schedule.MergeOperations(p.ops, p.subject.NewFill(time.Now())))
		}
	}
	q.mu.Unlock()
	q.wakeWorker()
}
