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

// write persists a subscription's newest record.
func (v *Verdicts) write(ctx context.Context, subscription string) error {
	if !v.keeps() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	select {
	case v.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-v.writing }()
	v.mu.Lock()
	r := v.records[subscription]
	v.mu.Unlock()
	return v.cfg.Store.Keep(ctx, subscription, r)
}

// Run loads the records, then persists changes until ctx is done.
func (v *Verdicts) Run(ctx context.Context) {
	if !v.keeps() {
		return
	}
	for done := v.until(ctx, v.read); done; done = v.until(ctx, v.keep) {
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		}
	}
}

// until retries call until success, or returns false once ctx is done.
func (v *Verdicts) until(ctx context.Context, call func(context.Context) bool) bool {
	for !call(ctx) {
		if sleep.For(ctx, v.cfg.Interval) != nil {
			return false
		}
	}
	return true
}

func (v *Verdicts) read(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	records, err := v.cfg.Store.Read(within)
	v.mu.Lock()
	if err != nil {
		v.unread = err.Error()
		v.mu.Unlock()
		return false
	}
	for subscription, r := range records {
		if _, newer := v.records[subscription]; !newer {
			v.records[subscription] = r
		}
	}
	v.unread = ""
	v.mu.Unlock()
	now := time.Now()
	for _, subscription := range slices.Sorted(maps.Keys(records)) {
		v.mu.Lock()
		known := v.known(subscription)
		v.mu.Unlock()
		v.cfg.Log.InfoContext(ctx, "whether pools that are due together are one write of their load balancer",
			"subscription", subscription, "addresses", known.May(wholewrite.Addresses, now, "").Why, "adminStates", known.May(wholewrite.AdminStates, now, "").Why,
			"overlapping", known.May(wholewrite.Overlapping, now, "").Why)
	}
	return true
}

func (v *Verdicts) keep(ctx context.Context) bool {
	v.mu.Lock()
	due := maps.Clone(v.unkept)
	v.mu.Unlock()
	for subscription := range due {
		v.mu.Lock()
		delete(v.unkept, subscription)
		v.mu.Unlock()
		if err := v.write(ctx, subscription); err != nil {
			v.mu.Lock()
			v.unkept[subscription] = true
			v.mu.Unlock()
			v.cfg.Log.WarnContext(ctx, "what Azure does with writes of whole load balancers is not on record yet", "err", err)
			return false
		}
	}
	return true
}

func (v *Verdicts) signal() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}
