// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolschedule"
)

// firstReadLasts is how long what was read of all BackendPools stands in for a read of each. What
// is older meets a conflict when it is written, and is read again then: that only costs more.
const firstReadLasts = time.Minute

// firstReadDeadline bounds the read: whoever waits for it is reconciled again.
const firstReadDeadline = time.Minute

// firstRead is what a process reads of all BackendPools when it meets the first that another one may
// have recorded something of: a thousand reads in one.
type firstRead struct {
	// slot has room for one, who reads, or looks up what was read: whoever comes meanwhile waits for
	// what that brings.
	slot chan struct{}
	done bool
	at   time.Time
	read map[poolschedule.Ref]*v1alpha1.BackendPool
}

// of returns a BackendPool as the API server holds it, or held it a moment ago. Each is returned once.
func (f *firstRead) of(ctx context.Context, s *Statuses, ref poolschedule.Ref, now time.Time) (*v1alpha1.BackendPool, error) {
	p, err := f.take(ctx, s.api, ref, now)
	if p == nil && err == nil {
		return s.read(ctx, ref)
	}
	return p, err
}

// take returns nil for one that was not among them.
func (f *firstRead) take(ctx context.Context, api API, ref poolschedule.Ref, now time.Time) (*v1alpha1.BackendPool, error) {
	select {
	case f.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-f.slot }()
	if !f.done {
		ctx, cancel := context.WithTimeout(ctx, firstReadDeadline)
		defer cancel()
		all, err := api.All(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading all BackendPools: %w", err)
		}
		f.done, f.at, f.read = true, now, make(map[poolschedule.Ref]*v1alpha1.BackendPool, len(all))
		for _, p := range all {
			f.read[RefOf(p)] = p
		}
	}
	if now.Sub(f.at) > firstReadLasts {
		f.read = nil
	}
	p := f.read[ref]
	delete(f.read, ref)
	return p, nil
}

// drop has a BackendPool read by itself that was changed since.
func (f *firstRead) drop(ref poolschedule.Ref) {
	f.slot <- struct{}{}
	defer func() { <-f.slot }()
	delete(f.read, ref)
}
