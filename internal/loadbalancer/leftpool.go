// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
)

// LeftPoolStore persists the record. Only the leader writes.
type LeftPoolStore interface {
	// ReadPools returns the Services as namespace/name.
	ReadPools(ctx context.Context) (map[lb.PoolKey]string, error)
	// KeepPools changes the Services of some pools; an empty Service deletes the pool.
	KeepPools(ctx context.Context, changed map[lb.PoolKey]string) error
}

// timeout limits one read or write of the record.
const timeout = 10 * time.Second

// LeftPoolTracker caches the record. Its methods are safe for concurrent use.
type LeftPoolTracker struct {
	store  LeftPoolStore // nil keeps the record in memory
	slot   chan struct{} // held by the reader or writer, also across API server calls
	record LeftPoolRecord
}

// NewLeftPoolTracker returns an instance that reads the record on first use; a nil Store keeps it in memory.
func NewLeftPoolTracker(store LeftPoolStore) *LeftPoolTracker {
	return &LeftPoolTracker{store: store, slot: make(chan struct{}, 1)}
}

// LeftPoolRecord maps pools to Services.
type LeftPoolRecord map[lb.PoolKey]string

// LoadRecord returns the record. The caller must not modify it.
func (l *LeftPoolTracker) LoadRecord(ctx context.Context) (LeftPoolRecord, error) {
	l.slot <- struct{}{}
	defer func() { <-l.slot }()
	if l.record != nil || l.store == nil {
		return l.record, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	of, err := l.store.ReadPools(ctx)
	if err != nil {
		return nil, fmt.Errorf("the record of pools that were left to others cannot be read: %w", err)
	}
	if l.record = of; of == nil {
		l.record = LeftPoolRecord{}
	}
	return l.record, nil
}

// HasPool reports whether a pool is recorded. It returns true if the record cannot be read: the pool is then not
// taken over.
func (l *LeftPoolTracker) HasPool(pool lb.PoolKey) bool {
	record, err := l.LoadRecord(context.Background())
	return err != nil || record[pool] != ""
}

// LeftPools maps pools left for foreign members to the Services they were made for.
type LeftPools map[lb.PoolID]string

// RecordLeft records the pools left on a load balancer and drops those that Azure no longer has. observed is the load
// balancer after the write.
func (l *LeftPoolTracker) RecordLeft(ctx context.Context, pools LeftPools, on lb.LoadBalancerID, observed lb.LoadBalancer) error {
	record, err := l.LoadRecord(ctx)
	if err != nil {
		return err
	}
	changed := LeftPoolRecord{}
	for pool, service := range pools {
		if record[pool.Key()] != service {
			changed[pool.Key()] = service
		}
	}
	for key := range record {
		if key.LoadBalancer() == on.Key() && !slices.ContainsFunc(observed.Pools, func(p lb.Pool) bool { return lb.PoolID{LoadBalancer: on, Name: p.ID.Name}.Key() == key }) {
			changed[key] = ""
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return l.updateRecord(ctx, changed)
}

// ForgetPools drops pools from the record.
func (l *LeftPoolTracker) ForgetPools(ctx context.Context, pools []lb.PoolKey) error {
	if len(pools) == 0 {
		return nil
	}
	changed := LeftPoolRecord{}
	for _, key := range pools {
		changed[key] = ""
	}
	return l.updateRecord(ctx, changed)
}

func (l *LeftPoolTracker) updateRecord(ctx context.Context, changed LeftPoolRecord) error {
	l.slot <- struct{}{}
	defer func() { <-l.slot }()
	if l.store != nil {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := l.store.KeepPools(ctx, changed); err != nil {
			l.record = nil // the write may have succeeded
			return fmt.Errorf("the record of pools that were left to others cannot be written: %w", err)
		}
	}
	next := maps.Clone(l.record)
	if next == nil {
		next = LeftPoolRecord{}
	}
	for key, service := range changed {
		if next[key] = service; service == "" {
			delete(next, key)
		}
	}
	l.record = next
	return nil
}

// NamesOn returns the recorded pools of a load balancer, sorted and in lower case.
func (r LeftPoolRecord) NamesOn(on lb.LoadBalancerID) []string {
	var names []string
	for key := range r {
		if key.LoadBalancer() == on.Key() {
			names = append(names, string(key[strings.LastIndexByte(string(key), '/')+1:]))
		}
	}
	slices.Sort(names)
	return names
}

// ServicePools filters names for pools of the load balancer that Weir made for the Service and left.
func (r LeftPoolRecord) ServicePools(service string, on lb.LoadBalancerID, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return r[lb.PoolID{LoadBalancer: on, Name: name}.Key()] != service
	})
}
