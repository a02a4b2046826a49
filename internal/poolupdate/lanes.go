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

// Config is what the lanes work with. All fields but Lease, and those of writes of whole load
// balancers, are needed.
type Config struct {
	// Interval is the longest that a busy pool waits for its pace, and the distance between
	// retries.
	Interval time.Duration
	// Writes says what is left of Azure's quotas of writes, and is told of changes. Whoever
	// sends the writes counts them there. Nil counts none, so that nothing is ever short.
	Writes *pace.Budgets
	// MaxRetries is how many retries an operation may consume; 0 turns them off.
	MaxRetries int
	// DriftPeriod is how often each pool is read though nothing changed, and made level
	// where it is not; 0 is never.
	DriftPeriod time.Duration
	// AdminState has addresses be Down that the cluster wants so. Otherwise nobody looks
	// at admin states, and a write leaves them as they are.
	AdminState bool
	Azure      Azure
	// Behaviour is what is known of Azure; what it does not know is not counted on.
	Behaviour behaviour.Behaviour
	// Whole writes load balancers with all their pools, where several pools are due and
	// WholeWrites lets it; nil is never.
	Whole       poolattempt.Balancers
	WholeWrites wholewrite.Setting
	// Pipeline writes pools without waiting for the end of each, where several are due and Pipelined
	// lets it; nil is never. It needs Whole.
	Pipeline  Pipeline
	Pipelined wholewrite.Setting
	// Verdicts keeps what is found out about that, with the Version of Weir that did; nil is
	// until the process ends.
	Verdicts verdicts.Store
	Version  string
	Cluster  Cluster
	Ledger   poolattempt.Ledger
	// Members writes the members of pools of network interfaces; nil leaves these as they are.
	Members Members
	// Lease keeps other controllers away during a pass; nil is none.
	Lease    Lease
	Reporter Reporter
	Log      *slog.Logger
}

// Lanes are the lanes of all load balancers. Its methods may be called from any
// goroutine, at any time.
type Lanes struct {
	cfg Config

	coalesced, known atomic.Uint64

	verdicts *verdicts.Verdicts

	mu    sync.Mutex
	lanes map[lb.LoadBalancerKey]*lane
	// start runs a lane in the background; nil before Run and after it.
	start func(*lane)
}

// New returns Lanes that take operations at once and work on them during Run.
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

// pipelined is what is to be known of writes that overlap: nothing where none are made.
func pipelined(cfg Config) wholewrite.Setting {
	if cfg.Pipeline == nil {
		return wholewrite.Never
	}
	return cfg.Pipelined
}

// Run works until the context is done, and returns when no attempt is under way
// any more. What is still queued then is dropped without a word.
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

// Add queues operations and wakes their lanes, each of which finds all at once. It waits for nothing.
func (ls *Lanes) Add(ops ...poolschedule.Operation) {
	now, of := time.Now(), map[*lane][]poolschedule.Operation{}
	var behind []lb.PoolID // their lanes are at work
	ls.mu.Lock()           // held across, so that no lane ends in between
	for _, op := range ops {
		l := ls.lane(op.Pool.LoadBalancer)
		of[l] = append(of[l], op)
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
	for l, its := range of {
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

// tellBehind says of a pool that something else on its load balancer goes first, if so.
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

// RemoveService takes out what waits for a Service, parked or not, and returns how
// many operations that were.
func (ls *Lanes) RemoveService(name poolschedule.ServiceName) int {
	n := 0
	for _, l := range ls.all() {
		n += l.queue.remove(func(op poolschedule.Operation) bool { return op.Service == name })
	}
	return n
}

// Resume ends the waits for what was not ready on our own side. It is for who knows that
// it is ready now.
func (ls *Lanes) Resume() {
	for _, l := range ls.all() {
		l.queue.resume()
	}
}

// Retry has what waits for a BackendPool tried without our own waiting, with all of its retries left, once an
// interval. What Azure asked for is waited for, and the pace of a pool that changes often, too.
func (ls *Lanes) Retry(ref poolschedule.Ref) {
	for _, l := range ls.all() {
		afresh(l.queue, ref, time.Now())
	}
}

// Drop takes out what waits for a BackendPool. What Azure asked for is remembered.
// No machine becomes a member of its pool any more, or is taken out of it.
func (ls *Lanes) Drop(ref poolschedule.Ref) {
	for _, l := range ls.all() {
		l.queue.remove(func(op poolschedule.Operation) bool { return op.Ref == ref })
		for _, pool := range letGo(l.queue, ref) {
			ls.cfg.Members.Forget(pool)
		}
	}
}

// Forget drops a pool and all that is remembered of it. A lane without pools ends, once
// nobody works in it any more.
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

// reap ends a lane that has no pool and in which nobody works.
func (ls *Lanes) reap(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.lanes[l.id.Key()] != l || !l.queue.empty() {
		return
	}
	select {
	case l.slot <- struct{}{}: // and nobody will: the slot stays taken
		delete(ls.lanes, l.id.Key())
		close(l.ended)
	default:
	}
}

// LevelAs reports whether a pool is known to hold the membership of this
// fingerprint, with nothing queued or under way that could change that: a new
// operation would only read.
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

// Lock takes a load balancer's lane for somebody else who writes that load
// balancer; what that does to the pools goes through Carry. No pool of it is written
// until unlock is called.
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

// Backlog returns what waits now. Its cost grows with the number of pools.
func (ls *Lanes) Backlog() Backlog {
	var b Backlog
	now := time.Now()
	for _, l := range ls.all() {
		b = l.queue.backlog(b, now)
	}
	return b
}

// Avoided counts the operations that cost nothing: those that a queued one stood for,
// and the times that a pool was known to be level.
func (ls *Lanes) Avoided() (coalesced, known uint64) {
	return ls.coalesced.Load(), ls.known.Load()
}

// WholeWrites counts subscriptions by change and by what is known of writes of whole load
// balancers, once it is known what is on record; own is the cluster's.
func (ls *Lanes) WholeWrites(own string) map[[2]string]int { return ls.verdicts.Count(own) }

// lane returns the lane of a load balancer, and starts it if it is new. The caller
// holds ls.mu.
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
