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

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
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
	// Whole writes whole load balancers if several pools are due; Auto does so once Azure was
	// observed to accept it.
	Whole, Auto bool
	// Pipelined overlaps pool writes if several are due; FindsOut does so once Azure was observed
	// to accept it.
	Pipelined, FindsOut bool
	// LeaseTerm is the term of the resource lease; 0 disables it.
	LeaseTerm time.Duration
	// Replicas is the number of processes; fewer than two hold no election.
	Replicas int
	// Role is Weir's Azure role; nil allows everything.
	Role *armemu.Role
	// Behaviour selects undocumented Azure behavior; unset answers use the assumed one. The verb
	// cluster can override it.
	Behaviour behaviour.Behavior
	// Latency draws a recorded latency per write; empty uses a constant fifth of the usual latency.
	Latency armemu.Latency
}

// Stage is a cluster, its Azure and one or more processes in virtual time. It is not safe for
// concurrent use.
type Stage struct {
	opts  Options
	start time.Time
	emu   *armemu.Emulator
	log   *slog.Logger
	rules faultRules
	// underWay counts late writes still in flight.
	underWay sync.WaitGroup

	// mu guards the fields below, which workers access concurrently. It is never held while time
	// passes or during a client call.
	mu       sync.Mutex
	process  *process // the leader, or the last one
	former   []string // former leaders
	leader   leadersLease
	frozen   []chan struct{} // closed by thaw
	lives    int
	cluster  cluster
	balances []lb.LoadBalancerID // by distance
	pools    map[lb.PoolKey]*pool
	gates    map[string]*gate
	late     *lateWrites
	joints   map[lb.LoadBalancerKey]*joint
	verdicts verdicts
	outage   *outage
	lease    resourceLease
	ledger   ledgerFaults
	// looked caches pool state, writes counts Azure writes since then, and written is the time of
	// the last one.
	looked  map[*pool]look
	writes  int
	written time.Time
	// weirs are the Azure callers that are Weir processes.
	weirs  map[string]bool
	locked map[lb.LoadBalancerKey]*process // load balancers locked by another process
	// closing is closed by heal and Close to end pending delays.
	closing chan struct{}
	journal journal
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
		pools: map[lb.PoolKey]*pool{}, gates: map[string]*gate{}, looked: map[*pool]look{}, weirs: map[string]bool{},
		locked: map[lb.LoadBalancerKey]*process{}, joints: map[lb.LoadBalancerKey]*joint{}, closing: make(chan struct{}),
		emu: armemu.New(armemu.Options{Seed: opts.Seed, Role: opts.Role, LatencyScale: scale, LatencyFixed: opts.Latency == "", Latency: opts.Latency, Behavior: opts.Behaviour.WithDefaults(behaviour.AssumedBehavior()), CallLogCap: callLog}),
	}
	s.journal.counts, s.journal.writes, s.journal.wholes = map[string]int{}, map[string]lb.PoolKey{}, map[string]lb.LoadBalancerID{}
	s.log = slog.New(slog.NewJSONHandler(&s.journal.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return s
}

// callLog is the emulator's log size, more than the number of workers.
const callLog = 32

// latencyScale gives 0.3 s per pool write, 0.6 s per load balancer write, and polls every 2 s.
const latencyScale = 0.2

// Do runs one step, waits until the bubble is idle, and runs the checks. It returns the trace. It
// fails if the step is invalid, an expectation is not met, or a check fails.
func (s *Stage) Do(step Step) (string, error) {
	v, ok := verbs()[step.Verb]
	if !ok {
		return "", fmt.Errorf("no verb %q: use one of %s", step.Verb, strings.Join(slices.Sorted(maps.Keys(verbs())), ", "))
	}
	args := newReader(step)
	quiet := args.flag("quiet")
	said, err := v.run(s, args)
	s.opts.Settle()
	err = errors.Join(err, s.check())
	if err != nil {
		err = fmt.Errorf("%s: %w", s.clock(time.Now()), err)
	}
	return s.harvest(quiet) + said, err
}

// Close stops the process and waits for it. The stage is unusable afterwards.
func (s *Stage) Close() error {
	s.stop("")
	s.sendHome()
	s.underWay.Wait()
	s.opts.Settle()
	return s.check()
}

// clock formats a time relative to the start of the script.
func (s *Stage) clock(t time.Time) string {
	return fmt.Sprintf("%+.3fs", t.Sub(s.start).Seconds())
}

// sleep lets virtual time pass.
func (s *Stage) sleep(d time.Duration) {
	time.Sleep(d)
	s.opts.Settle()
}

// trace appends a line. The caller holds s.mu.
func (s *Stage) trace(who, format string, args ...any) {
	s.journal.lines = append(s.journal.lines, line{time.Now(), who, fmt.Sprintf(format, args...)})
}

// harvest returns the lines of the current step.
func (s *Stage) harvest(quiet bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.journal.lines
	s.journal.lines = nil
	if quiet {
		if len(lines) == 0 {
			return ""
		}
		return fmt.Sprintf("(%d lines, the last at %s)\n", len(lines), s.clock(lines[len(lines)-1].at))
	}
	// The order of workers at the same instant is not deterministic.
	lanes := s.lanesOf(lines)
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(lanes[a.who], lanes[b.who]))
	})
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "%10s  %-8s %s\n", s.clock(l.at), l.who, l.text)
	}
	return out.String()
}

// lanesOf numbers the workers in the lines from 1; other lines have none. The caller holds s.mu.
func (s *Stage) lanesOf(lines []line) map[string]int {
	of := map[string]int{}
	for _, l := range lines {
		if _, known := of[l.who]; known {
			continue
		}
		of[l.who] = 1 + slices.IndexFunc(s.balances, func(b lb.LoadBalancerID) bool {
			k := s.poolNamed(l.who)
			return b.Name == l.who || k != nil && k.id.LoadBalancer.Key() == b.Key()
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
	// left are the members that a BackendPool left behind because it was deleted while paused.
	left leftovers
	// deleted: the script deleted the pool in Azure.
	deleted bool
	// drifted: another writer removed or changed Weir's addresses at driftedAt.
	drifted   bool
	driftedAt time.Time
	// emptied: a BackendPool released the pool without Weir's members.
	emptied bool
	// claimed: a BackendPool existed for it.
	claimed bool

	attempt *attempt
	// added counts queued operations, failed the retriable failures since the last one was queued,
	// and row the consecutive ones.
	added, failed, row int
	// givenUp: nothing retries except drift repair.
	givenUp bool
	// surrender is why the last change was given up, or "".
	surrender string
	level     bool
	// parkedUntil is the time in the last report.
	parkedUntil time.Time
	// patience is the Retry-After of a rejection; excuse is the time until which the process may
	// wait for any reason.
	patience, excuse time.Time
	// last is the last response of the attempt.
	last answer
	// admin: an admin-state change is queued.
	admin bool
	// waits is when the oldest change not yet attempted was queued. first also counts one that may
	// have been dropped: a worker dequeues a pool before it waits for its locks. Zero if none.
	waits, first time.Time
	// putOff is when a postponed drift read was queued; zero if none.
	putOff time.Time
	// looks: the queued work is a read without a known change, which has lower priority than
	// changes.
	looks bool
	// begun and ended are the times of the last attempt, and again is the earliest retry; zero if
	// none.
	begun, ended, again time.Time
	paced               paced
	// backsOff: the last attempt was postponed, or failed for admin states. Both back off.
	backsOff bool
	// trouble is the time until which faults excuse an out-of-sync pool.
	trouble time.Time
	// unwanted maps undesired addresses to when they were first seen.
	unwanted map[string]time.Time
	// offSince is when the pool got out of sync with an unchanged membership; zero if in sync.
	offSince time.Time
	// changed is when the oldest change not yet in effect happened, as far as attempts know.
	changed time.Time
	wanted  uint64            // fingerprint of the last membership
	words   map[string]string // last event by Service
}

// answer is the response to a request.
type answer struct {
	kind   string // kind of the call; empty if none
	status int    // 0: response lost
	forged bool   // injected by a fault
	at     time.Time
	// parent: the write was rejected because its load balancer is Failed.
	parent bool
}

// attempt lasts from the first read of a pool to its report.
type attempt struct {
	added int    // operations queued before it began
	phase string // "get" or "put"
	sent  int    // requests in this phase
	// overtaken: the first write met 412, or a load balancer was written before the second.
	overtaken bool
	// mends: it has read its load balancer and is about to write it.
	mends bool
	gone  bool // the pool had no desired state
	over  bool // its calls are done
	// orphan: its BackendPool was deleted, and the result is dropped.
	orphan bool
	// first is when the work it took was queued; the work may be requeued without a report.
	first time.Time
	// took is first, for an attempt that may join a batch.
	took time.Time
	// admin: an admin-state change was queued for it.
	admin bool
	// together: part of a batched update, void if the batch fails.
	together bool
	// read: its load balancer was read, and no write was sent.
	read bool
	// known: the process has the response to its write, but may still process others.
	known bool
	// passed is a change that was due when the worker dequeued this pool.
	passed string
}

// between reports whether an attempt may be between read and write, where the updater asks again.
// The caller holds s.mu.
func (k *pool) between() bool {
	return k.attempt.mends || k.attempt.phase == "get" && (k.attempt.overtaken || k.last.status == http.StatusOK)
}

// underWay reports whether an attempt is making calls. The caller holds s.mu.
func (k *pool) underWay() bool { return k.attempt != nil && !k.attempt.over }
