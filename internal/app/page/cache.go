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
	fresh = time.Second
	// share limits the load on the API server: an entry lives at least this many times as long as it took to
	// gather.
	share         = 10
	gatherTimeout = 30 * time.Second
	mostKept      = 100
)

var errBusy = errors.New("too many different pages are requested at the same time: try again in a few seconds")

// cache keeps gathered results briefly, by name. It gathers one result at a time, shared by all callers, and
// only on demand.
type cache struct {
	one chan struct{} // capacity 1, held while gathering
	all chan struct{} // the same, shared between caches

	mu   sync.Mutex
	kept map[string]*gathered
}

type gathered struct {
	done  chan struct{}
	value any
	err   error
	until time.Time // set when done is closed
}

func newCache() *cache { return sharing(make(chan struct{}, 1)) }

// sharing returns a cache that also takes a shared slot to gather.
func sharing(slots chan struct{}) *cache {
	return &cache{one: make(chan struct{}, 1), all: slots, kept: map[string]*gathered{}}
}

// take returns the cached result for name, or gathers it. Gathering continues after ctx ends, because other
// callers may wait for it.
func take[T any](ctx context.Context, s *cache, name string, gather func(context.Context) (T, error)) (T, error) {
	var none T
	g, err := s.find(name, func(ctx context.Context) (any, error) { return gather(ctx) })
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

func (s *cache) find(name string, gather func(context.Context) (any, error)) (*gathered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.kept, func(_ string, g *gathered) bool { return g.over(now) })
	g := s.kept[name]
	if g == nil {
		if len(s.kept) >= mostKept {
			return nil, errBusy
		}
		g = &gathered{done: make(chan struct{})}
		s.kept[name] = g
		go s.fill(g, gather)
	}
	return g, nil
}

func (s *cache) fill(g *gathered, gather func(context.Context) (any, error)) {
	s.one <- struct{}{}
	defer func() { <-s.one }()
	s.all <- struct{}{}
	defer func() { <-s.all }()
	ctx, cancel := context.WithTimeout(context.Background(), gatherTimeout)
	defer cancel()
	began := time.Now()
	g.value, g.err = gather(ctx)
	ended := time.Now()
	g.until = ended.Add(max(fresh, share*ended.Sub(began)))
	close(g.done)
}

func (s *cache) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept) == 0
}

func (g *gathered) over(now time.Time) bool {
	select {
	case <-g.done:
		return !now.Before(g.until)
	default:
		return false
	}
}
