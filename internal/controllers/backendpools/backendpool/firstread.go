// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/schedule"
)

// firstReadTTL is how long the initial list is used instead of single reads. A stale entry only costs a
// conflict and another read.
const firstReadTTL = time.Minute

// firstReadTimeout is the timeout of the list; waiting reconciliations are retried.
const firstReadTimeout = time.Minute

// firstRead lists all BackendPools once, instead of reading each when a process first sees it.
type firstRead struct {
	// slot is a one-slot semaphore: concurrent callers wait for the list.
	slot chan struct{}
	done bool
	at   time.Time
	read map[schedule.Ref]*v1alpha1.BackendPool
}

// getPool returns a BackendPool from the list, at most once each; otherwise it reads the object.
func (f *firstRead) getPool(ctx context.Context, s *Statuses, ref schedule.Ref, now time.Time) (*v1alpha1.BackendPool, error) {
	p, err := f.takePool(ctx, s.api, ref, now)
	if p == nil && err == nil {
		return s.readPool(ctx, ref)
	}
	return p, err
}

// takePool returns nil if the list does not have the BackendPool.
func (f *firstRead) takePool(ctx context.Context, api API, ref schedule.Ref, now time.Time) (*v1alpha1.BackendPool, error) {
	select {
	case f.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-f.slot }()
	if !f.done {
		ctx, cancel := context.WithTimeout(ctx, firstReadTimeout)
		defer cancel()
		pools, err := api.All(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading all BackendPools: %w", err)
		}
		f.done, f.at, f.read = true, now, make(map[schedule.Ref]*v1alpha1.BackendPool, len(pools))
		for _, p := range pools {
			f.read[RefOf(p)] = p
		}
	}
	if now.Sub(f.at) > firstReadTTL {
		f.read = nil
	}
	p := f.read[ref]
	delete(f.read, ref)
	return p, nil
}

// dropPool removes a changed BackendPool from the list.
func (f *firstRead) dropPool(ref schedule.Ref) {
	f.slot <- struct{}{}
	defer func() { <-f.slot }()
	delete(f.read, ref)
}
