// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

// Options configure a Stage. Settle is required.
type Options struct {
	// Settle returns when all other goroutines in the bubble are blocked: synctest.Wait.
	Settle func()
	// Seed makes the emulator's etags and ids repeatable.
	Seed uint64
	// Interval and MaxRetries configure the updater. The verb cluster can set them before the first
	// process starts.
	Interval   time.Duration
	MaxRetries int
	// SharePercent is the share of Azure's write quota that the process uses; 0 is half.
	SharePercent int
	// DriftPeriod is the period of drift reads; 0 disables them.
	DriftPeriod time.Duration
	// AdminState sets addresses of draining nodes Down.
	AdminState bool
	// Pipelined allows pool writes to overlap if several are due.
	Pipelined bool
	// LeaseTerm is the term of the resource lease; 0 disables it.
	LeaseTerm time.Duration
	// Replicas is the number of processes; fewer than two hold no election.
	Replicas int
	// Role is Weir's Azure role; nil allows everything.
	Role *armemu.Role
	// Behaviour selects undocumented Azure behavior; unset answers use the assumed one. The verb
	// cluster can override it.
	Behaviour behavior.Behavior
	// Latency draws a recorded latency per write; empty uses a constant fifth of the usual latency.
	Latency armemu.Latency
}

// Stage is a cluster, its Azure and one or more processes in virtual time. It is not safe for
// concurrent use.
type Stage struct {
	opts     Options
	start    time.Time
	emulator *armemu.Emulator
	log      *slog.Logger
	rules    faultRules
	// pendingWrites counts late writes still in flight.
	pendingWrites sync.WaitGroup

	// mu guards the fields below, which workers access concurrently. It is never held while time
	// passes or during a client call.
	mu             sync.Mutex
	process        *process // the leader, or the last one
	oldLeaderNames []string // former leaders
	leaderLease    leaderLease
	frozenUntil    []chan struct{} // closed to resume
	processCount   int
	cluster        cluster
	loadBalancers  []lb.LoadBalancerID // by distance
	pools          map[lb.PoolKey]*pool
	throttleGates  map[string]*throttleGate
	staleWrites    *staleWrites
	batches        map[lb.LoadBalancerKey]*batch
	outages        *outage
	lease          resourceLease
	statusErrors   statusErrors
	// snapshots caches pool state, with the number of Azure writes since then and the time of the last
	// one.
	snapshots   map[*pool]snapshot
	writes      int
	lastWriteAt time.Time
	// processTokens are the Azure callers that are Weir processes.
	processTokens map[string]bool
	lockedBy      map[lb.LoadBalancerKey]*process // load balancers locked by another process
	// closed is closed to end pending delays.
	closed  chan struct{}
	history history
}

// New returns an empty stage without a running process.
func New(opts Options) *Stage {
	if opts.SharePercent == 0 {
		opts.SharePercent = 50
	}
	if opts.Interval == 0 {
		opts.Interval = 30 * time.Second
	}
	scale := latencyScale
	if opts.Latency != "" {
		scale = 1
	}
	s := &Stage{
		opts: opts, start: time.Now(), cluster: newCluster(),
		pools: map[lb.PoolKey]*pool{}, throttleGates: map[string]*throttleGate{}, snapshots: map[*pool]snapshot{}, processTokens: map[string]bool{},
		lockedBy: map[lb.LoadBalancerKey]*process{}, batches: map[lb.LoadBalancerKey]*batch{}, closed: make(chan struct{}),
		emulator: armemu.New(armemu.Options{Seed: opts.Seed, Role: opts.Role, LatencyScale: scale, LatencyFixed: opts.Latency == "", Latency: opts.Latency, Behavior: opts.Behaviour.WithDefaults(behavior.AssumedBehavior()), CallLogCap: callLog}),
	}
	s.history.counts, s.history.writes, s.history.batchWrites = map[string]int{}, map[string]lb.PoolKey{}, map[string]lb.LoadBalancerID{}
	s.log = slog.New(slog.NewJSONHandler(&s.history.logLines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return s
}

// callLog is the emulator's log size, more than the number of workers.
const callLog = 32

// latencyScale gives 0.3 s per pool write, 0.6 s per load balancer write, and polls every 2 s.
const latencyScale = 0.2

// Do runs one step, waits until the bubble is idle, and runs the checks. It returns the trace. It
// fails if the step is invalid, an expectation is not met, or a check fails.
func (s *Stage) Do(step Step) (string, error) {
	v, ok := allVerbs()[step.Verb]
	if !ok {
		return "", fmt.Errorf("no verb %q: use one of %s", step.Verb, strings.Join(slices.Sorted(maps.Keys(allVerbs())), ", "))
	}
	args := newReader(step)
	quiet := args.flagArg("quiet")
	output, err := v.run(s, args)
	s.opts.Settle()
	err = errors.Join(err, s.runChecks())
	if err != nil {
		err = fmt.Errorf("%s: %w", s.formatTime(time.Now()), err)
	}
	return s.takeLines(quiet) + output, err
}

// Close stops the process and waits for it. The stage is unusable afterwards.
func (s *Stage) Close() error {
	s.stopProcess("")
	s.cancelDelays()
	s.pendingWrites.Wait()
	s.opts.Settle()
	return s.runChecks()
}

// formatTime formats a time relative to the start of the script.
func (s *Stage) formatTime(t time.Time) string {
	return fmt.Sprintf("%+.3fs", t.Sub(s.start).Seconds())
}

func (s *Stage) sleepFor(d time.Duration) {
	time.Sleep(d)
	s.opts.Settle()
}

// addLine appends a line. The caller holds s.mu.
func (s *Stage) addLine(subject, format string, args ...any) {
	s.history.lines = append(s.history.lines, line{time.Now(), subject, fmt.Sprintf(format, args...)})
}

func (s *Stage) takeLines(quiet bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.history.lines
	s.history.lines = nil
	if quiet {
		if len(lines) == 0 {
			return ""
		}
		return fmt.Sprintf("(%d lines, the last at %s)\n", len(lines), s.formatTime(lines[len(lines)-1].at))
	}
	// The order of workers at the same instant is not deterministic.
	lanes := s.numberWorkers(lines)
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(lanes[a.source], lanes[b.source]))
	})
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "%10s  %-8s %s\n", s.formatTime(l.at), l.source, l.text)
	}
	return out.String()
}

// numberWorkers numbers the workers in the lines from 1; other lines have none. The caller holds s.mu.
func (s *Stage) numberWorkers(lines []line) map[string]int {
	of := map[string]int{}
	for _, l := range lines {
		if _, known := of[l.source]; known {
			continue
		}
		of[l.source] = 1 + slices.IndexFunc(s.loadBalancers, func(b lb.LoadBalancerID) bool {
			k := s.poolNamed(l.source)
			return b.Name == l.source || k != nil && k.id.LoadBalancer.Key() == b.Key()
		})
	}
	return of
}

// pool is the stage's record of an Azure backend pool and of Weir's work on it.
type pool struct {
	id      lb.PoolID
	foreign []lb.Address
	// foreignDown are addresses set Down by another writer; false if the address may have been
	// removed and added since.
	foreignDown map[netip.Addr]bool
	// orphaned are the members that a BackendPool left behind because it was deleted while paused.
	orphaned orphanedMembers
	// deleted: the script deleted the pool in Azure.
	deleted bool
	// isDrifted: another writer removed or changed Weir's addresses, at the given time.
	isDrifted bool
	driftedAt time.Time
	// isEmpty: a BackendPool released the pool without Weir's members.
	isEmpty bool
	// hadBackendPool: a BackendPool existed for it.
	hadBackendPool bool

	attempt *attempt
	// Queued operations, retriable failures since the last one was queued, and consecutive
	// failures.
	operations, failures, consecutiveFailures int
	// gaveUp: nothing retries except drift repair.
	gaveUp bool
	// failureReason is why the last change was given up, or "".
	failureReason string
	inSync        bool
	// parkedUntil is the time in the last report.
	parkedUntil time.Time
	// The Retry-After of a rejection, and the time until which the process may wait for any reason.
	rejectedUntil, excusedUntil time.Time
	// lastAnswer is the last response of the attempt.
	lastAnswer response
	// adminQueued: an admin-state change is queued.
	adminQueued bool
	// When the oldest change not yet attempted was queued, without and with changes that may have
	// been dropped: a worker dequeues a pool before it waits for its locks. Zero if none.
	queuedAt, firstQueuedAt time.Time
	// deferredAt is when a postponed drift read was queued; zero if none.
	deferredAt time.Time
	// isReadQueued: the queued work is a read without a known change, which has lower priority than
	// changes.
	isReadQueued bool
	// Start and end of the last attempt, and the earliest retry; zero if none.
	startedAt, endedAt, retryAt time.Time
	rate                        poolRate
	// inBackoff: the last attempt was postponed, or failed for admin states. Both back off.
	inBackoff bool
	// faultEnd is the time until which faults excuse an out-of-sync pool.
	faultEnd time.Time
	// extraSince maps undesired addresses to when they were first seen.
	extraSince map[string]time.Time
	// outOfSyncSince is when the pool got out of sync with an unchanged membership; zero if in sync.
	outOfSyncSince time.Time
	// changedAt is when the oldest change not yet in effect happened, as far as attempts know.
	changedAt      time.Time
	membershipHash uint64            // fingerprint of the last membership
	lastEvents     map[string]string // last event by Service
}

type response struct {
	kind      string // kind of the call; empty if none
	status    int    // 0: response lost
	fromFault bool   // injected by a fault
	at        time.Time
	// parentFailed: the write was rejected because its load balancer is Failed.
	parentFailed bool
}

// attempt lasts from the first read of a pool to its report.
type attempt struct {
	added    int    // operations queued before it began
	phase    string // "get" or "put"
	requests int    // requests in this phase
	// isConflict: the first write met 412, or a load balancer was written before the second.
	isConflict bool
	// isRepair: it has read its load balancer and is about to write it.
	isRepair       bool
	noDesiredState bool // the pool had no desired state
	isOver         bool // its calls are done
	// isOrphaned: its BackendPool was deleted, and the result is dropped.
	isOrphaned bool
	// firstQueuedAt is when the work it took was queued; the work may be requeued without a report.
	firstQueuedAt time.Time
	// dequeuedAt is the same for an attempt that may join a batch.
	dequeuedAt time.Time
	// adminQueued: an admin-state change was queued for it.
	adminQueued bool
	// inBatch: part of a batched update, void if the batch fails.
	inBatch bool
	// isRead: its load balancer was read, and no write was sent.
	isRead bool
	// hasResponse: the process has the response to its write, but may still process others.
	hasResponse bool
	// overtakenChange is a change that was due when the worker dequeued this pool.
	overtakenChange string
}

// mayRequery reports whether an attempt may be between read and write, where the updater queries
// again. The caller holds s.mu.
func (p *pool) mayRequery() bool {
	return p.attempt.isRepair || p.attempt.phase == "get" && (p.attempt.isConflict || p.lastAnswer.status == http.StatusOK)
}

// isAttempted reports whether an attempt is making calls. The caller holds s.mu.
func (p *pool) isAttempted() bool { return p.attempt != nil && !p.attempt.isOver }
