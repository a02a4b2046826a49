// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"context"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/sleep"
	"weir.dev/weir/internal/wholewrite"
)

// writeRecord persists a subscription's newest record.
func (v *Tracker) writeRecord(ctx context.Context, subscription string) error {
	if !v.hasRecord() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	select {
	case v.writeLock <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-v.writeLock }()
	v.mu.Lock()
	r := v.records[subscription]
	v.mu.Unlock()
	return v.cfg.Store.WriteRecord(ctx, subscription, r)
}

// Run loads the records, then persists changes until ctx is done.
func (v *Tracker) Run(ctx context.Context) {
	if !v.hasRecord() {
		return
	}
	for done := v.retryUntilDone(ctx, v.readRecords); done; done = v.retryUntilDone(ctx, v.writeDirty) {
		select {
		case <-ctx.Done():
			return
		case <-v.changed:
		}
	}
}

// retryUntilDone retries call until success, or returns false once ctx is done.
func (v *Tracker) retryUntilDone(ctx context.Context, call func(context.Context) bool) bool {
	for !call(ctx) {
		if sleep.For(ctx, v.cfg.Interval) != nil {
			return false
		}
	}
	return true
}

func (v *Tracker) readRecords(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	records, err := v.cfg.Store.ReadRecords(within)
	v.mu.Lock()
	if err != nil {
		v.recordError = err.Error()
		v.mu.Unlock()
		return false
	}
	for subscription, r := range records {
		if _, newer := v.records[subscription]; !newer {
			v.records[subscription] = r
		}
	}
	v.recordError = ""
	v.mu.Unlock()
	now := time.Now()
	for _, subscription := range slices.Sorted(maps.Keys(records)) {
		v.mu.Lock()
		known := v.stateOf(subscription)
		v.mu.Unlock()
		v.cfg.Log.InfoContext(ctx, "whether pools that are due together are one write of their load balancer",
			"subscription", subscription, "addresses", known.DecideChange(wholewrite.Addresses, now, "").Reason, "adminStates", known.DecideChange(wholewrite.AdminStates, now, "").Reason,
			"overlapping", known.DecideChange(wholewrite.Overlap, now, "").Reason)
	}
	return true
}

func (v *Tracker) writeDirty(ctx context.Context) bool {
	v.mu.Lock()
	due := maps.Clone(v.dirty)
	v.mu.Unlock()
	for subscription := range due {
		v.mu.Lock()
		delete(v.dirty, subscription)
		v.mu.Unlock()
		if err := v.writeRecord(ctx, subscription); err != nil {
			v.mu.Lock()
			v.dirty[subscription] = true
			v.mu.Unlock()
			v.cfg.Log.WarnContext(ctx, "what Azure does with writes of whole load balancers is not on record yet", "err", err)
			return false
		}
	}
	return true
}

func (v *Tracker) notifyWriter() {
	select {
	case v.changed <- struct{}{}:
	default:
	}
}
