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
	// recordPatience is the timeout of a store call, for which a worker waits before a trial.
	recordPatience = 10 * time.Second
	// recordRest is the pause after a trial that could not be recorded.
	recordRest = time.Hour
)

// Store persists Azure's observed behavior.
type Store interface {
	// Read returns the records by subscription.
	Read(ctx context.Context) (map[string]wholewrite.Record, error)
	// Keep replaces the record of a subscription.
	Keep(ctx context.Context, subscription string, r wholewrite.Record) error
}

// Config configures New.
type Config struct {
	// Settings for batched and for overlapping updates.
	Setting, Pipelined wholewrite.Setting
	// Probed is from weir probe.
	Probed behaviour.Behaviour
	// Store may be nil. Version is recorded.
	Store   Store
	Version string
	// Interval is the retry delay of store calls.
	Interval time.Duration
	Log      *slog.Logger
}

// Verdicts is shared by all workers.
type Verdicts struct {
	cfg Config

	mu      sync.Mutex
	unread  string // why the record is unknown; empty if known
	records map[string]wholewrite.Record
	seen    map[string]behaviour.Behaviour
	// Consecutive overlapping writes that persisted, and that were rejected.
	stayed, refused map[string]int
	trying          map[string]trial // running trials
	unkept          map[string]bool  // records to be written
	// rests is the next trial after one that could not be recorded.
	rests map[string]time.Time
	// A signal with capacity one, and a lock: a channel, because it is held during calls.
	wake, writing chan struct{}
}

// New returns a tracker without knowledge.
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

// keeps reports whether the record matters: some setting is Auto.
func (v *Verdicts) keeps() bool {
	return v.cfg.Store != nil && (v.cfg.Setting == wholewrite.Auto || v.cfg.Pipelined == wholewrite.Auto)
}

// known requires v.mu.
func (v *Verdicts) known(subscription string) wholewrite.Known {
	return wholewrite.Known{
		Setting: v.cfg.Setting, Pipelined: v.cfg.Pipelined, Version: v.cfg.Version, Probed: v.cfg.Probed,
		Seen: v.seen[subscription], Record: v.records[subscription], Unread: v.unread,
	}
}

// May returns the permissions of a batched update. blockedReason is only called if a trial may begin.
func (v *Verdicts) May(subscription string, now time.Time, blockedReason func(wholewrite.Change) string) wholewrite.Leaves {
	return wholewrite.Leaves{
		Addresses: v.may(subscription, wholewrite.Addresses, now, blockedReason), States: v.may(subscription, wholewrite.AdminStates, now, blockedReason),
	}
}

// MayOverlap returns the permission of overlapping writes.
func (v *Verdicts) MayOverlap(subscription string, now time.Time, blockedReason func(wholewrite.Change) string) wholewrite.Leave {
	return v.may(subscription, wholewrite.Overlapping, now, blockedReason)
}

func (v *Verdicts) may(subscription string, c wholewrite.Change, now time.Time, blockedReason func(wholewrite.Change) string) wholewrite.Leave {
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
		return known.May(c, now, blockedReason(c)).Leave
	}
}

var errNoTrial = errors.New("another load balancer of the subscription is on trial")

type trial struct {
	changes []wholewrite.Change
	before  wholewrite.Record
}

// Begin records a trial before it is made, so that a crash counts as one. It has to be ended.
func (v *Verdicts) Begin(ctx context.Context, subscription string, changes []wholewrite.Change) error {
	subscription, now := wholewrite.Key(subscription), time.Now()
	v.mu.Lock()
	known := v.known(subscription)
	_, trying := v.trying[subscription]
	free := !trying && !slices.ContainsFunc(changes, func(c wholewrite.Change) bool { return known.May(c, now, "").Leave != wholewrite.Try })
	if free {
		v.trying[subscription] = trial{changes, v.records[subscription]}
		for _, c := range changes {
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

// End ends a trial. If nothing was sent, the record is reverted.
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

// overlapsProven is the number of consecutive overlapping writes that have to persist before
// completions of overtaken ones are not awaited (design 0039).
const overlapsProven = 3

// Proven reports whether this process has seen Azure apply such changes.
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

// overlapsRefused is the number of consecutive rejections that prove missing support; one may be
// caused by another client (design 0039).
const overlapsRefused = 3

// Refused counts a rejection because of the previous write, and reports whether that is now proven.
// Otherwise a trial is inconclusive.
func (v *Verdicts) Refused(ctx context.Context, subscription string, answer behaviour.Answer) (known bool) {
	key := wholewrite.Key(subscription)
	v.mu.Lock()
	delete(v.stayed, key)
	v.refused[key]++
	known = v.refused[key] >= overlapsRefused
	v.mu.Unlock()
	if known {
		v.Learn(ctx, subscription, map[wholewrite.Change]behaviour.Answer{wholewrite.Overlapping: answer})
	}
	return known
}

// Answer returns the observed behavior, ignoring settings.
func (v *Verdicts) Answer(subscription string, c wholewrite.Change, now time.Time) behaviour.Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.known(wholewrite.Key(subscription))
	known.Setting, known.Pipelined = wholewrite.Auto, wholewrite.Auto
	return behaviour.Answer(known.Verdict(c, now))
}

// Learn records a write's effect, and logs news.
func (v *Verdicts) Learn(ctx context.Context, subscription string, answers map[wholewrite.Change]behaviour.Answer) {
	subscription, now := wholewrite.Key(subscription), time.Now()
	for _, c := range wholewrite.Questions() {
		a := answers[c]
		if a == "" {
			continue
		}
		v.mu.Lock()
		isNew := wholewrite.Answer(v.seen[subscription], c) != a
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
		if isNew {
			v.tell(ctx, subscription, c, a)
		}
	}
}

// counts requires v.mu.
func (v *Verdicts) counts(subscription string, stayed bool) {
	if !stayed {
		delete(v.stayed, subscription)
		return
	}
	v.stayed[subscription]++
	delete(v.refused, subscription)
}

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

func (v *Verdicts) tellOverlapping(ctx context.Context, subscription string, a behaviour.Answer) {
	log := v.cfg.Log.With("subscription", subscription, "overlapping", string(a))
	if a == behaviour.Supersede {
		log.InfoContext(ctx, "Azure takes a write of a pool while another of its load balancer runs: those that are due together are sent one after the other from now on, and awaited once")
		return
	}
	log.InfoContext(ctx, "Azure does not take a write of a pool while another of its load balancer runs: each waits for the end of the one before")
}

// Count counts subscriptions by change and state, once the record was read.
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
