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
	// fresh is how long something that was gathered is shown to others.
	fresh = time.Second
	// share is how many times as long as it took to gather it is kept, at least: however large a cluster
	// is, the API server is asked for a tenth of the time.
	share = 10
	// gatherTimeout is how long the API server may take.
	gatherTimeout = 30 * time.Second
	// mostKept is how many sheets are gathered or kept at the same time.
	mostKept = 100
)

// errBusy is the answer where too many sheets are asked for at the same time.
var errBusy = errors.New("too many different pages are asked for at the same time: try again in a few seconds")

// cache keeps what was gathered for a moment, by name. One thing is gathered at a time, for all who ask
// for it, and nothing unless somebody does.
type cache struct {
	one chan struct{} // has room for whoever gathers
	all chan struct{} // the same, for all caches that share it

	mu   sync.Mutex
	kept map[string]*gathered
}

// gathered is a thing in the cache, or on its way there.
type gathered struct {
	done  chan struct{}
	value any
	err   error
	until time.Time // of one that is done
}

func newCache() *cache { return sharing(make(chan struct{}, 1)) }

// sharing is a cache beside others: as many of them gather at the same time as there are slots.
func sharing(slots chan struct{}) *cache {
	return &cache{one: make(chan struct{}, 1), all: slots, kept: map[string]*gathered{}}
}

// take returns what is kept by a name, or has it gathered. What was begun is brought to its end though
// whoever asked first has gone: others may wait for it.
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

// empty reports whether nothing is kept, or on its way.
func (s *cache) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept) == 0
}

// over reports whether a thing is too old to be shown.
func (g *gathered) over(now time.Time) bool {
	select {
	case <-g.done:
		return !now.Before(g.until)
	default:
		return false
	}
}
