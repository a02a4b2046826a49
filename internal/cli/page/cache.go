// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"
)

const (
	minCacheTTL = time.Second
	// cacheTTLFactor limits the load on the API server: an entry lives at least this many times as long as it took to
	// gather.
	cacheTTLFactor  = 10
	gatherTimeout   = 30 * time.Second
	maxCacheEntries = 100
)

var errBusy = errors.New("too many different pages are requested at the same time: try again in a few seconds")

// pageCache keeps gathered results briefly, by name. It gathers one result at a time, shared by all callers, and
// only on demand.
type pageCache struct {
	slot        chan struct{} // capacity 1, held while gathering
	sharedSlots chan struct{} // the same, shared between caches

	mu      sync.Mutex
	entries map[string]*cacheEntry
}

type cacheEntry struct {
	done  chan struct{}
	value any
	err   error
	until time.Time // set when done is closed
}

func newCache() *pageCache { return newSharedCache(make(chan struct{}, 1)) }

// newSharedCache returns a cache that also takes a shared slot to gather.
func newSharedCache(slots chan struct{}) *pageCache {
	return &pageCache{slot: make(chan struct{}, 1), sharedSlots: slots, entries: map[string]*cacheEntry{}}
}

// getCached returns the cached result for name, or gathers it. Gathering continues after ctx ends, because other
// callers may wait for it.
func getCached[T any](ctx context.Context, s *pageCache, name string, gather func(context.Context) (T, error)) (T, error) {
	var none T
	g, err := s.findOrStart(name, func(ctx context.Context) (any, error) { return gather(ctx) })
	if err != nil {
		return none, err
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if g.err != nil {
		return none, g.err
	}
	return g.value.(T), nil
}

func (p *pageCache) findOrStart(name string, gather func(context.Context) (any, error)) (*cacheEntry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.entries, func(_ string, g *cacheEntry) bool { return g.isExpired(now) })
	g := p.entries[name]
	if g == nil {
		if len(p.entries) >= maxCacheEntries {
			return nil, errBusy
		}
		g = &cacheEntry{done: make(chan struct{})}
		p.entries[name] = g
		go p.gatherEntry(g, gather)
	}
	return g, nil
}

func (p *pageCache) gatherEntry(g *cacheEntry, gather func(context.Context) (any, error)) {
	p.slot <- struct{}{}
	defer func() { <-p.slot }()
	p.sharedSlots <- struct{}{}
	defer func() { <-p.sharedSlots }()
	ctx, cancel := context.WithTimeout(context.Background(), gatherTimeout)
	defer cancel()
	began := time.Now()
	g.value, g.err = gather(ctx)
	ended := time.Now()
	g.until = ended.Add(max(minCacheTTL, cacheTTLFactor*ended.Sub(began)))
	close(g.done)
}

func (p *pageCache) isEmpty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.entries) == 0
}

func (c *cacheEntry) isExpired(now time.Time) bool {
	select {
	case <-c.done:
		return !now.Before(c.until)
	default:
		return false
	}
}
