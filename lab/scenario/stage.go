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
	// Settle returns when everything else in the bubble waits for time to pass:
	// synctest.Wait.
	Settle func()
	// Seed makes the emulator's etags and ids repeatable.
	Seed uint64
	// Interval and MaxRetries are the lanes'; the verb cluster can set them before
	// the process is first started.
	Interval   time.Duration
	MaxRetries int
	// SharePercent is how much of Azure's quota of writes the process spends; 0 is half.
	SharePercent int
	// DriftPeriod is how often the lanes look at a pool though nothing changed; 0 is never.
	DriftPeriod time.Duration
	// AdminState has addresses of nodes that drain be Down.
	AdminState bool
	// Whole has load balancers written whole where several pools are due; Auto where Azure was
	// seen to take that.
	Whole, Auto bool
	// Pipelined has pools written without waiting for the end of each where several are due;
	// FindsOut where Azure was seen to take that.
	Pipelined, FindsOut bool
	// LeaseTerm is how long the resource lease is acquired for; 0 is no lease.
	LeaseTerm time.Duration
	// Replicas is how many processes take turns in leading; fewer than two hold no election.
	Replicas int
	// Role is what Azure lets Weir do; nil is everything.
	Role *armemu.Role
	// Behaviour is what Azure does where that is not known; what it leaves open is as
	// assumed. The verb cluster can answer otherwise.
	Behaviour behaviour.Behaviour
	// Latency has Azure take as long as was recorded, drawn anew for each write; empty is a
	// fifth of what is usual, always the same.
	Latency armemu.Latency
}

// Stage is a world in virtual time. Its methods are for one goroutine.
type Stage struct {
	opts  Options
	start time.Time
	emu   *armemu.Emulator
	log   *slog.Logger
	rules faultRules
	// underWay are writes that still have to land.
	underWay sync.WaitGroup

	// mu guards all below: the lanes of several load balancers call at once. It is
	// never held while time passes, nor during a call to the client.
	mu       sync.Mutex
	process  *process // that leads, or did last
	former   []string // processes after which another led
	leader   leadersLease
	frozen   []chan struct{} // closed by thaw
	lives    int
	cluster  cluster
	balances []lb.LoadBalancerID // in the order of their distance
	pools    map[lb.PoolKey]*pool
	gates    map[string]*gate
	late     *lateWrites
	joints   map[lb.LoadBalancerKey]*joint
	verdicts verdicts
	outage   *outage
	lease    resourceLease
	ledger   ledgerFaults
	// looked is how pools were at the last look, writes how many writes Azure has got
	// since, and written when the last of them came.
	looked  map[*pool]look
	writes  int
	written time.Time
	// weirs are the callers, as Azure has them on record, that are processes of Weir.
	weirs  map[string]bool
	locked map[lb.LoadBalancerKey]*process // whose lane somebody else holds
	// closing is closed by heal and Close: whoever waits for its time goes home.
	closing chan struct{}
	journal journal
}

// New returns an empty stage, on which nothing runs yet.
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
		emu: armemu.New(armemu.Options{Seed: opts.Seed, Role: opts.Role, LatencyScale: scale, LatencyFixed: opts.Latency == "", Latency: opts.Latency, Behaviour: opts.Behaviour.Or(behaviour.Assumed()), CallLogCap: callLog}),
	}
	s.journal.counts, s.journal.writes, s.journal.wholes = map[string]int{}, map[string]lb.PoolKey{}, map[string]lb.LoadBalancerID{}
	s.log = slog.New(slog.NewJSONHandler(&s.journal.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return s
}

// callLog is how many calls the emulator remembers: more than there can be lanes.
const callLog = 32

// latencyScale makes a pool write take 0.3 s, one of a load balancer 0.6 s, and polls come every 2 s.
const latencyScale = 0.2

// Do makes one step, lets everything come to rest, and makes the checks. It returns
// what happened, line by line. An error is a step that cannot be made, an expectation
// that is not met, or a check that does not hold.
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

// Close ends the process and waits for it. The stage is of no use afterwards.
func (s *Stage) Close() error {
	s.stop("")
	s.sendHome()
	s.underWay.Wait()
	s.opts.Settle()
	return s.check()
}

// clock spells a time as the script sees it.
func (s *Stage) clock(t time.Time) string {
	return fmt.Sprintf("%+.3fs", t.Sub(s.start).Seconds())
}

// sleep lets virtual time pass.
func (s *Stage) sleep(d time.Duration) {
	time.Sleep(d)
	s.opts.Settle()
}

// trace adds a line. The caller holds s.mu.
func (s *Stage) trace(who, format string, args ...any) {
	s.journal.lines = append(s.journal.lines, line{time.Now(), who, fmt.Sprintf(format, args...)})
}

// harvest returns the lines since the last step.
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
	// Lanes that do something in the same instant do so in no particular order.
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

// lanesOf numbers the lanes of which lines tell, from 1; what is no lane's has none. The
// caller holds s.mu.
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

// pool is what the stage knows of a backend pool in Azure, and of what Weir did to it.
type pool struct {
	id      lb.PoolID
	foreign []lb.Address
	// foreignDown are addresses that somebody else has set Down; false for one that may have
	// been taken out and put back since.
	foreignDown map[netip.Addr]bool
	// left is what a BackendPool that was deleted while it was paused has left to others.
	left leftovers
	// deleted is true after the script took the pool out of Azure.
	deleted bool
	// drifted is true after somebody else took or changed addresses of ours, at driftedAt.
	drifted   bool
	driftedAt time.Time
	// emptied is true after a BackendPool has let the pool go, with nothing of ours in it.
	emptied bool
	// claimed is true once there was a BackendPool for it.
	claimed bool

	attempt *attempt
	// added is how many operations were queued, failed how many attempts since the
	// last of them failed in a way that is tried again, and row how many did in a row.
	added, failed, row int
	// givenUp is true when nothing will try again on its own, drift repair apart.
	givenUp bool
	// surrender is what the last change was given up for; empty if it was not.
	surrender string
	level     bool
	// parkedUntil is what the last report said.
	parkedUntil time.Time
	// patience is until when a refusal asked to leave the pool alone, and excuse until when
	// the process may do so for any answer.
	patience, excuse time.Time
	// last is the last answer that the attempt got.
	last answer
	// admin is true while a change of its admin states waits.
	admin bool
	// waits is since when a change is queued that no attempt has taken, and first the same
	// of one that may have been dropped since: a lane takes a pool before it waits for its
	// locks. Zero if there is none.
	waits, first time.Time
	// putOff is since when a look for drift waits that was postponed; zero if none does.
	putOff time.Time
	// looks is true if what waits is a look: no change is known to stand behind it, so it
	// stands back behind changes.
	looks bool
	// begun and ended are when the last attempt did, and again is when the next one is
	// allowed to begin if that one is tried again; zero if it is not.
	begun, ended, again time.Time
	paced               paced
	// backsOff: its last attempt was none, or failed for admin states. Either has a back-off.
	backsOff bool
	// trouble is until when faults excuse a pool that is not level.
	trouble time.Time
	// unwanted is since when the pool holds what it should not.
	unwanted map[string]time.Time
	// offSince is since when the pool is not level with a membership that stays the
	// same; zero if it is level.
	offSince time.Time
	// changed is since when a change is not in force, as far as an attempt has seen.
	changed time.Time
	wanted  uint64            // the membership's fingerprint at the last look
	words   map[string]string // last word by Service
}

// answer is how a request was answered.
type answer struct {
	kind   string // as of a call; empty if there was none
	status int    // 0 for an answer that was lost
	forged bool   // a fault answered, not Azure's state
	at     time.Time
	// parent is true of a write that was refused because its load balancer is Failed.
	parent bool
}

// attempt is from the first read of a pool to the report.
type attempt struct {
	added int    // operations queued until it began
	phase string // "get" or "put"
	sent  int    // requests of this phase so far
	// overtaken: its first write met 412, or a load balancer that was written before the second.
	overtaken bool
	// mends: it has read its load balancer, and is about to write that.
	mends bool
	gone  bool // the cluster had nothing to want when it was asked what is wanted
	over  bool // its calls have been made
	// orphan is true if its BackendPool went meanwhile: nobody learns from it.
	orphan bool
	// first is since when what it took has waited, which may come back without a report.
	first time.Time
	// took is first, of an attempt that may come to be one of several.
	took time.Time
	// admin: a change of admin states has waited for it.
	admin bool
	// together: it is one by a write of all pools, and nobody's if that comes to nothing.
	together bool
	// read: its load balancer has been, and no write has left.
	read bool
	// known: the process has the answer to its write, though it may be busy with others.
	known bool
	// passed is a change that was due when the lane took this pool.
	passed string
}

// between reports whether an attempt may be between a read and a write, where the lane asks as well.
// The caller holds s.mu.
func (k *pool) between() bool {
	return k.attempt.mends || k.attempt.phase == "get" && (k.attempt.overtaken || k.last.status == http.StatusOK)
}

// underWay reports whether an attempt makes calls. The caller holds s.mu.
func (k *pool) underWay() bool { return k.attempt != nil && !k.attempt.over }
