// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/wholewrite"
)

const (
	// recordPatience bounds one call for the record: a lane waits for it before a trial.
	recordPatience = 10 * time.Second
	// recordRest is how long no trial begins after one that could not be put on record.
	recordRest = time.Hour
)

// Store keeps, durably, what Azure was seen to do with writes of whole load balancers.
type Store interface {
	// Read returns what is on record, by subscription.
	Read(ctx context.Context) (map[string]wholewrite.Record, error)
	// Keep replaces what is on record of a subscription.
	Keep(ctx context.Context, subscription string, r wholewrite.Record) error
}

// Config is what Verdicts work with.
type Config struct {
	// Setting is what the operator wants of whole writes, and Pipelined of writes that overlap.
	Setting, Pipelined wholewrite.Setting
	// Probed is what weir probe has found out.
	Probed behaviour.Behaviour
	// Store is nil where nothing is kept, and Version who writes there.
	Store   Store
	Version string
	// Interval is when a call for the record that failed is made again.
	Interval time.Duration
	Log      *slog.Logger
}

// Verdicts is what is known of writes of whole load balancers, by subscription. All lanes share
// it.
type Verdicts struct {
	cfg Config

	mu      sync.Mutex
	unread  string // why the record is not known; empty if it is
	records map[string]wholewrite.Record
	seen    map[string]behaviour.Behaviour
	// stayed counts how often in a row overlapping writes were seen to stay, and refused how often in
	// a row one was refused.
	stayed, refused map[string]int
	trying          map[string]trial // those under way
	unkept          map[string]bool  // the record is to be written
	// rests is when the next trial may begin after one that could not be put on record.
	rests map[string]time.Time
	// wake has room for one token: something is to be written. writing is held by who writes; it
	// is a channel because that takes time.
	wake, writing chan struct{}
}

// New returns what is known before anything was read or seen.
func New(cfg Config) *Verdicts {
	v := &Verdicts{
		cfg: cfg, records: map[string]wholewrite.Record{}, seen: map[string]behaviour.Behaviour{},
		trying: map[string]trial{}, unkept: map[string]bool{}, rests: map[string]time.Time{},
		stayed: map[string]int{}, refused: map[string]int{},
		wake: make(chan struct{}, 1), writing: make(chan struct{}, 1),
	}
	if v.keeps() {
		v.unread = "the API server was not asked yet"
	}
	return v
}

// keeps reports whether there is a record at all: who decides by setting alone needs none.
func (v *Verdicts) keeps() bool {
	return v.cfg.Store != nil && (v.cfg.Setting == wholewrite.Auto || v.cfg.Pipelined == wholewrite.Auto)
}

// known is what is known of a subscription. The caller holds v.mu.
func (v *Verdicts) known(subscription string) wholewrite.Known {
	return wholewrite.Known{
		Setting: v.cfg.Setting, Pipelined: v.cfg.Pipelined, Version: v.cfg.Version, Probed: v.cfg.Probed,
		Seen: v.seen[subscription], Record: v.records[subscription], Unread: v.unread,
	}
}

// May decides of both changes of a write of a whole load balancer. unrest is asked only where it
// counts.
func (v *Verdicts) May(subscription string, now time.Time, unrest func(wholewrite.Change) string) wholewrite.Leaves {
	return wholewrite.Leaves{
		Addresses: v.may(subscription, wholewrite.Addresses, now, unrest), States: v.may(subscription, wholewrite.AdminStates, now, unrest),
	}
}

// MayOverlap decides of writes of pools that overlap.
func (v *Verdicts) MayOverlap(subscription string, now time.Time, unrest func(wholewrite.Change) string) wholewrite.Leave {
	return v.may(subscription, wholewrite.Overlapping, now, unrest)
}

func (v *Verdicts) may(subscription string, c wholewrite.Change, now time.Time, unrest func(wholewrite.Change) string) wholewrite.Leave {
	subscription = wholewrite.Key(subscription)
	v.mu.Lock()
	known := v.known(subscription)
	_, trying := v.trying[subscription]
	trying = trying || v.rests[subscription].After(now)
	v.mu.Unlock()
	switch leave := known.May(c, now, "").Leave; {
	case leave != wholewrite.Try:
		return leave
	case trying:
		return wholewrite.No
	default:
		return known.May(c, now, unrest(c)).Leave
	}
}

// errNoTrial is why a trial is not made.
var errNoTrial = errors.New("another load balancer of the subscription is on trial")

// trial is one that is under way: what is tried, and what was on record before it.
type trial struct {
	changes []wholewrite.Change
	before  wholewrite.Record
}

// Begin puts a trial on record, before it is made: one that ends the process was one, too. End
// has to be called after it, unless there is an error.
func (v *Verdicts) Begin(ctx context.Context, subscription string, tries []wholewrite.Change) error {
	subscription, now := wholewrite.Key(subscription), time.Now()
	v.mu.Lock()
	known := v.known(subscription)
	_, trying := v.trying[subscription]
	free := !trying && !slices.ContainsFunc(tries, func(c wholewrite.Change) bool { return known.May(c, now, "").Leave != wholewrite.Try })
	if free {
		v.trying[subscription] = trial{tries, v.records[subscription]}
		for _, c := range tries {
			v.records[subscription] = v.records[subscription].Tried(c, v.cfg.Version, now)
		}
	}
	v.mu.Unlock()
	if !free {
		return errNoTrial
	}
	if err := v.write(ctx, subscription); err != nil {
		v.mu.Lock()
		v.rests[subscription] = now.Add(recordRest)
		v.mu.Unlock()
		v.End(subscription, false)
		return err
	}
	return nil
}

// End ends a trial, whatever came of it. One that was not sent is taken off the record again.
func (v *Verdicts) End(subscription string, sent bool) {
	subscription = wholewrite.Key(subscription)
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.trying[subscription]
	delete(v.trying, subscription)
	if sent {
		return
	}
	for _, c := range t.changes {
		v.records[subscription] = v.records[subscription].Untried(c, t.before)
	}
	if v.keeps() {
		v.unkept[subscription] = true
		v.signal()
	}
}

// overlapsProven is how often in a row overlapping writes have to be seen to stay before the end of
// those that were overtaken is not awaited any more (design 0039).
const overlapsProven = 3

// Proven reports whether this process has seen Azure take changes.
func (v *Verdicts) Proven(subscription string, changes []wholewrite.Change) bool {
	subscription = wholewrite.Key(subscription)
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := v.seen[subscription]
	for _, c := range changes {
		if !wholewrite.Takes(wholewrite.Answer(seen, c)) || c == wholewrite.Overlapping && v.stayed[subscription] < overlapsProven {
			return false
		}
	}
	return true
}

// overlapsRefused is how often in a row Azure has to refuse a write because of the one before until that
// is its answer: once may be the doing of somebody else, whose write came in between (design 0039).
const overlapsRefused = 3

// Refused takes in that Azure refused a write while the one before ran, and reports whether it is known
// by that. A trial that ends so without being known was none.
func (v *Verdicts) Refused(ctx context.Context, subscription string, how behaviour.Answer) (known bool) {
	key := wholewrite.Key(subscription)
	v.mu.Lock()
	delete(v.stayed, key)
	v.refused[key]++
	known = v.refused[key] >= overlapsRefused
	v.mu.Unlock()
	if known {
		v.Learn(ctx, subscription, map[wholewrite.Change]behaviour.Answer{wholewrite.Overlapping: how})
	}
	return known
}

// Answer is what is known of a change, whoever has found it out: taken, ignored, or else. What
// somebody has set is no knowledge.
func (v *Verdicts) Answer(subscription string, c wholewrite.Change, now time.Time) behaviour.Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.known(wholewrite.Key(subscription))
	known.Setting, known.Pipelined = wholewrite.Auto, wholewrite.Auto
	return behaviour.Answer(known.Verdict(c, now))
}

// Learn takes in what Azure did with a write, and says so once.
func (v *Verdicts) Learn(ctx context.Context, subscription string, what map[wholewrite.Change]behaviour.Answer) {
	subscription, now := wholewrite.Key(subscription), time.Now()
	for _, c := range wholewrite.Questions() {
		a := what[c]
		if a == "" {
			continue
		}
		v.mu.Lock()
		news := wholewrite.Answer(v.seen[subscription], c) != a
		if c == wholewrite.Overlapping {
			v.counts(subscription, wholewrite.Takes(a))
		}
		v.seen[subscription] = wholewrite.With(v.seen[subscription], c, a)
		r, fresh := v.records[subscription].Saw(c, a, v.cfg.Version, now)
		v.records[subscription] = r
		if fresh && v.keeps() {
			v.unkept[subscription] = true
			v.signal()
		}
		v.mu.Unlock()
		if news {
			v.tell(ctx, subscription, c, a)
		}
	}
}

// counts counts overlapping writes in a row that stayed. The caller holds v.mu.
func (v *Verdicts) counts(subscription string, stayed bool) {
	if !stayed {
		delete(v.stayed, subscription)
		return
	}
	v.stayed[subscription]++
	delete(v.refused, subscription)
}

// tell has people know how pools are written from now on.
func (v *Verdicts) tell(ctx context.Context, subscription string, c wholewrite.Change, a behaviour.Answer) {
	if c == wholewrite.Overlapping {
		v.tellOverlapping(ctx, subscription, a)
		return
	}
	log := v.cfg.Log.With("subscription", subscription, "changes", string(c), "enableLoadBalancerWholeWrites", string(v.cfg.Setting))
	switch {
	case a == behaviour.Taken:
		log.InfoContext(ctx, "Azure takes a write of the whole load balancer for its pools: those that are due together are one write from now on")
	case v.cfg.Setting == wholewrite.Always:
		log.WarnContext(ctx, "Azure ignores a write of the whole load balancer for its pools: each pool is written by itself; set enableLoadBalancerWholeWrites to auto")
	default:
		log.InfoContext(ctx, "Azure ignores a write of the whole load balancer for its pools: each pool is written by itself")
	}
}

// tellOverlapping has people know whether pools are written one after the other from now on.
func (v *Verdicts) tellOverlapping(ctx context.Context, subscription string, a behaviour.Answer) {
	log := v.cfg.Log.With("subscription", subscription, "overlapping", string(a))
	if a == behaviour.Supersede {
		log.InfoContext(ctx, "Azure takes a write of a pool while another of its load balancer runs: those that are due together are sent one after the other from now on, and awaited once")
		return
	}
	log.InfoContext(ctx, "Azure does not take a write of a pool while another of its load balancer runs: each waits for the end of the one before")
}

// Count counts subscriptions by change and verdict. A process that does not lead has read nothing.
func (v *Verdicts) Count(own string) map[[2]string]int {
	now, all := time.Now(), map[[2]string]int{}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.unread != "" {
		return all
	}
	subscriptions := map[string]bool{wholewrite.Key(own): true}
	for s := range v.records {
		subscriptions[s] = true
	}
	for s := range v.seen {
		subscriptions[s] = true
	}
	for _, c := range wholewrite.Questions() {
		for s := range subscriptions {
			all[[2]string{strings.ReplaceAll(string(c), " ", "_"), v.known(s).Verdict(c, now)}]++
		}
	}
	return all
}
