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
	// storeTimeout is the timeout of a store call, for which a worker waits before a trial.
	storeTimeout = 10 * time.Second
	// retryDelay is the pause after a trial that could not be recorded.
	retryDelay = time.Hour
)

// Store persists Azure's observed behavior.
type Store interface {
	// ReadRecords returns the records by subscription.
	ReadRecords(ctx context.Context) (map[string]wholewrite.Record, error)
	// WriteRecord replaces the record of a subscription.
	WriteRecord(ctx context.Context, subscription string, r wholewrite.Record) error
}

// Config configures New.
type Config struct {
	// Settings for batched and for overlapping updates.
	BatchSetting, OverlapSetting wholewrite.Setting
	// FromFile is from weir probe.
	FromFile behaviour.Behavior
	// Store may be nil. Version is recorded.
	Store   Store
	Version string
	// Interval is the retry delay of store calls.
	Interval time.Duration
	Log      *slog.Logger
}

// Tracker is shared by all workers.
type Tracker struct {
	cfg Config

	mu          sync.Mutex
	recordError string // why the record is unknown; empty if known
	records     map[string]wholewrite.Record
	observed    map[string]behaviour.Behavior
	// Consecutive overlapping writes that persisted, and that were rejected.
	successCount, failureCount map[string]int
	runningTrials              map[string]pendingTrial // running trials
	dirty                      map[string]bool         // records to be written
	// startAfter is the next trial after one that could not be recorded.
	startAfter map[string]time.Time
	// A signal with capacity one, and a lock: a channel, because it is held during calls.
	changed, writeLock chan struct{}
}

// New returns a tracker without knowledge.
func New(cfg Config) *Tracker {
	v := &Tracker{
		cfg: cfg, records: map[string]wholewrite.Record{}, observed: map[string]behaviour.Behavior{},
		runningTrials: map[string]pendingTrial{}, dirty: map[string]bool{}, startAfter: map[string]time.Time{},
		successCount: map[string]int{}, failureCount: map[string]int{},
		changed: make(chan struct{}, 1), writeLock: make(chan struct{}, 1),
	}
	if v.hasRecord() {
		v.recordError = "the API server was not asked yet"
	}
	return v
}

// hasRecord reports whether the record matters: some setting is Auto.
func (v *Tracker) hasRecord() bool {
	return v.cfg.Store != nil && (v.cfg.BatchSetting == wholewrite.Auto || v.cfg.OverlapSetting == wholewrite.Auto)
}

// stateOf requires v.mu.
func (v *Tracker) stateOf(subscription string) wholewrite.State {
	return wholewrite.State{
		BatchSetting: v.cfg.BatchSetting, OverlapSetting: v.cfg.OverlapSetting, Version: v.cfg.Version, FromFile: v.cfg.FromFile,
		Observed: v.observed[subscription], Record: v.records[subscription], RecordError: v.recordError,
	}
}

// BatchPermissions returns the permissions of a batched update. blockedReason is only called if a trial may begin.
func (v *Tracker) BatchPermissions(subscription string, now time.Time, blockedReason func(wholewrite.Change) string) wholewrite.Permissions {
	return wholewrite.Permissions{
		Addresses: v.permissionFor(subscription, wholewrite.Addresses, now, blockedReason), States: v.permissionFor(subscription, wholewrite.AdminStates, now, blockedReason),
	}
}

// OverlapPermission returns the permission of overlapping writes.
func (v *Tracker) OverlapPermission(subscription string, now time.Time, blockedReason func(wholewrite.Change) string) wholewrite.Permission {
	return v.permissionFor(subscription, wholewrite.Overlap, now, blockedReason)
}

func (v *Tracker) permissionFor(subscription string, c wholewrite.Change, now time.Time, blockedReason func(wholewrite.Change) string) wholewrite.Permission {
	subscription = wholewrite.SubscriptionKey(subscription)
	v.mu.Lock()
	known := v.stateOf(subscription)
	_, trying := v.runningTrials[subscription]
	trying = trying || v.startAfter[subscription].After(now)
	v.mu.Unlock()
	switch leave := known.DecideChange(c, now, "").Permission; {
	case leave != wholewrite.Once:
		return leave
	case trying:
		return wholewrite.Denied
	default:
		return known.DecideChange(c, now, blockedReason(c)).Permission
	}
}

var errInProgress = errors.New("another load balancer of the subscription is on trial")

type pendingTrial struct {
	changes []wholewrite.Change
	before  wholewrite.Record
}

// StartTrial records a trial before it is made, so that a crash counts as one. It has to be ended.
func (v *Tracker) StartTrial(ctx context.Context, subscription string, changes []wholewrite.Change) error {
	subscription, now := wholewrite.SubscriptionKey(subscription), time.Now()
	v.mu.Lock()
	known := v.stateOf(subscription)
	_, trying := v.runningTrials[subscription]
	free := !trying && !slices.ContainsFunc(changes, func(c wholewrite.Change) bool { return known.DecideChange(c, now, "").Permission != wholewrite.Once })
	if free {
		v.runningTrials[subscription] = pendingTrial{changes, v.records[subscription]}
		for _, c := range changes {
			v.records[subscription] = v.records[subscription].WithAttempt(c, v.cfg.Version, now)
		}
	}
	v.mu.Unlock()
	if !free {
		return errInProgress
	}
	if err := v.writeRecord(ctx, subscription); err != nil {
		v.mu.Lock()
		v.startAfter[subscription] = now.Add(retryDelay)
		v.mu.Unlock()
		v.FinishTrial(subscription, false)
		return err
	}
	return nil
}

// FinishTrial ends a trial. If nothing was sent, the record is reverted.
func (v *Tracker) FinishTrial(subscription string, sent bool) {
	subscription = wholewrite.SubscriptionKey(subscription)
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.runningTrials[subscription]
	delete(v.runningTrials, subscription)
	if sent {
		return
	}
	for _, c := range t.changes {
		v.records[subscription] = v.records[subscription].WithoutAttempt(c, t.before)
	}
	if v.hasRecord() {
		v.dirty[subscription] = true
		v.notifyWriter()
	}
}

// minSuccesses is the number of consecutive overlapping writes that have to persist before
// completions of overtaken ones are not awaited (design 0039).
const minSuccesses = 3

// IsSupported reports whether this process has seen Azure apply such changes.
func (v *Tracker) IsSupported(subscription string, changes []wholewrite.Change) bool {
	subscription = wholewrite.SubscriptionKey(subscription)
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := v.observed[subscription]
	for _, c := range changes {
		if !wholewrite.IsSupported(wholewrite.ResultIn(seen, c)) || c == wholewrite.Overlap && v.successCount[subscription] < minSuccesses {
			return false
		}
	}
	return true
}

// minFailures is the number of consecutive rejections that prove missing support; one may be
// caused by another client (design 0039).
const minFailures = 3

// RecordFailure counts a rejection because of the previous write, and reports whether that is now proven.
// Otherwise a trial is inconclusive.
func (v *Tracker) RecordFailure(ctx context.Context, subscription string, answer behaviour.Result) (known bool) {
	key := wholewrite.SubscriptionKey(subscription)
	v.mu.Lock()
	delete(v.successCount, key)
	v.failureCount[key]++
	known = v.failureCount[key] >= minFailures
	v.mu.Unlock()
	if known {
		v.RecordResults(ctx, subscription, map[wholewrite.Change]behaviour.Result{wholewrite.Overlap: answer})
	}
	return known
}

// ObservedResult returns the observed behavior, ignoring settings.
func (v *Tracker) ObservedResult(subscription string, c wholewrite.Change, now time.Time) behaviour.Result {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.stateOf(wholewrite.SubscriptionKey(subscription))
	known.BatchSetting, known.OverlapSetting = wholewrite.Auto, wholewrite.Auto
	return behaviour.Result(known.StateLabel(c, now))
}

// RecordResults records a write's effect, and logs news.
func (v *Tracker) RecordResults(ctx context.Context, subscription string, answers map[wholewrite.Change]behaviour.Result) {
	subscription, now := wholewrite.SubscriptionKey(subscription), time.Now()
	for _, c := range wholewrite.AllChanges() {
		a := answers[c]
		if a == "" {
			continue
		}
		v.mu.Lock()
		isNew := wholewrite.ResultIn(v.observed[subscription], c) != a
		if c == wholewrite.Overlap {
			v.countOverlap(subscription, wholewrite.IsSupported(a))
		}
		v.observed[subscription] = wholewrite.SetResult(v.observed[subscription], c, a)
		r, fresh := v.records[subscription].UpdateResult(c, a, v.cfg.Version, now)
		v.records[subscription] = r
		if fresh && v.hasRecord() {
			v.dirty[subscription] = true
			v.notifyWriter()
		}
		v.mu.Unlock()
		if isNew {
			v.logResult(ctx, subscription, c, a)
		}
	}
}

// countOverlap requires v.mu.
func (v *Tracker) countOverlap(subscription string, stayed bool) {
	if !stayed {
		delete(v.successCount, subscription)
		return
	}
	v.successCount[subscription]++
	delete(v.failureCount, subscription)
}

func (v *Tracker) logResult(ctx context.Context, subscription string, c wholewrite.Change, a behaviour.Result) {
	if c == wholewrite.Overlap {
		v.logOverlap(ctx, subscription, a)
		return
	}
	log := v.cfg.Log.With("subscription", subscription, "changes", string(c), "enableLoadBalancerWholeWrites", string(v.cfg.BatchSetting))
	switch {
	case a == behaviour.Accepted:
		log.InfoContext(ctx, "Azure takes a write of the whole load balancer for its pools: those that are due together are one write from now on")
	case v.cfg.BatchSetting == wholewrite.Always:
		log.WarnContext(ctx, "Azure ignores a write of the whole load balancer for its pools: each pool is written by itself; set enableLoadBalancerWholeWrites to auto")
	default:
		log.InfoContext(ctx, "Azure ignores a write of the whole load balancer for its pools: each pool is written by itself")
	}
}

func (v *Tracker) logOverlap(ctx context.Context, subscription string, a behaviour.Result) {
	log := v.cfg.Log.With("subscription", subscription, "overlapping", string(a))
	if a == behaviour.Supersede {
		log.InfoContext(ctx, "Azure takes a write of a pool while another of its load balancer runs: those that are due together are sent one after the other from now on, and awaited once")
		return
	}
	log.InfoContext(ctx, "Azure does not take a write of a pool while another of its load balancer runs: each waits for the end of the one before")
}

// CountStates counts subscriptions by change and state, once the record was read.
func (v *Tracker) CountStates(own string) map[[2]string]int {
	now, all := time.Now(), map[[2]string]int{}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.recordError != "" {
		return all
	}
	subscriptions := map[string]bool{wholewrite.SubscriptionKey(own): true}
	for s := range v.records {
		subscriptions[s] = true
	}
	for s := range v.observed {
		subscriptions[s] = true
	}
	for _, c := range wholewrite.AllChanges() {
		for s := range subscriptions {
			all[[2]string{strings.ReplaceAll(string(c), " ", "_"), v.stateOf(s).StateLabel(c, now)}]++
		}
	}
	return all
}
