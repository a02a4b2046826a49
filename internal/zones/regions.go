// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	readTimeout = 30 * time.Second
	// retryDelay limits reads while Azure rejects them; a permission that is added takes effect after it.
	retryDelay = 10 * time.Minute
	// outageDelay limits reads that fail for another reason. What is new waits for outageLimit, then gets no zones.
	outageDelay = 10 * time.Second
	outageLimit = time.Minute
)

// ErrRejected means that Azure rejected the read: the zones stay unknown until the cause is fixed.
var ErrRejected = errors.New("rejected")

// Regions caches the zones of a subscription's regions. Its methods are safe for concurrent use; a nil Regions knows
// none.
type Regions struct {
	read func(context.Context) (map[string][]string, error)
	log  *slog.Logger
	slot chan struct{} // held during a read

	mu       sync.Mutex          // guards the fields below; never held during a read
	zones    map[string][]string // by region; nil until read
	err      error
	failedAt time.Time
	// failingSince is when the failures began.
	failingSince time.Time
	hasWarned    bool
}

// NewRegions returns a cache. read returns the zones by region; it is called when zones are needed first, and again
// only after a failure.
func NewRegions(read func(context.Context) (map[string][]string, error), log *slog.Logger) *Regions {
	return &Regions{read: read, log: log, slot: make(chan struct{}, 1)}
}

var errUnread = errors.New("they were not read yet")

// Region returns the zones of a location, and reads them if needed. A rejected read leaves them unknown and is logged once.
// After any other failure Pick returns the error for outageLimit, because zones cannot be added later.
func (r *Regions) Region(ctx context.Context, location string) Region {
	if r == nil || location == "" {
		return Region{Location: location}
	}
	if err := r.Load(ctx); err != nil {
		return Region{Location: location, Outage: err}
	}
	return r.CachedRegion(location)
}

// CachedRegion returns the zones of a location as last read, without a read.
func (r *Regions) CachedRegion(location string) Region {
	of := Region{Location: location}
	if r == nil || location == "" {
		return of
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	of = NewRegion(location, r.zones)
	switch {
	case r.isOutage():
		of.Outage = r.err
	case r.zones == nil && r.err == nil:
		of.Outage = errUnread
	}
	return of
}

// Err returns why the last read failed; nil if it did not, or nothing was read.
func (r *Regions) Err() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// NeedsRead reports whether the zones are unknown and no read failed recently.
func (r *Regions) NeedsRead() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delay := retryDelay
	if r.isOutage() {
		delay = outageDelay
	}
	return r.zones == nil && (r.err == nil || time.Since(r.failedAt) >= delay)
}

// Load reads the zones if needed. It returns an error only if ctx is done: a failed read is part of the cache.
func (r *Regions) Load(ctx context.Context) error {
	if r == nil {
		return nil
	}
	select {
	case r.slot <- struct{}{}:
		defer func() { <-r.slot }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !r.NeedsRead() {
		r.warnOnce(ctx)
		return nil
	}
	within, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	read, err := r.read(within)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.recordRead(read, err)
	r.warnOnce(ctx)
	return nil
}

func (r *Regions) recordRead(read map[string][]string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.zones, r.err = read, nil
		return
	}
	if r.err == nil {
		r.failingSince = time.Now()
	}
	r.err, r.failedAt = err, time.Now()
}

// warnOnce logs that what is new gets no zones.
func (r *Regions) warnOnce(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || r.hasWarned || r.isOutage() {
		return
	}
	r.hasWarned = true
	r.log.WarnContext(ctx, "the availability zones of the region are not known: new public IPs and private frontends get none, unless an annotation names them, "+
		"and zones cannot be added later. Permit Microsoft.Resources/subscriptions/locations/read on the subscription, or set availabilityZones in azure.json", "err", r.err)
}

// isOutage reports whether reads fail that Azure did not reject, for less than outageLimit. The caller holds the lock.
func (r *Regions) isOutage() bool {
	return r.err != nil && !errors.Is(r.err, ErrRejected) && time.Since(r.failingSince) < outageLimit
}

// regionKey treats the display name and the name of a region alike.
func regionKey(location string) string {
	return strings.ToLower(strings.ReplaceAll(location, " ", ""))
}
