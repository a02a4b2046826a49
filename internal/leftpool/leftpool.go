// SPDX-License-Identifier: Apache-2.0

// Package leftpool records the backend pools that Weir made for Services and left because they hold foreign
// addresses. Without the record, such a pool looks like a foreign one.
package leftpool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
)

// Store persists the record. Only the leader writes.
type Store interface {
	// ReadPools returns the Services as namespace/name.
	ReadPools(ctx context.Context) (map[lb.PoolKey]string, error)
	// KeepPools changes the Services of some pools; an empty Service deletes the pool.
	KeepPools(ctx context.Context, changed map[lb.PoolKey]string) error
}

// timeout limits one read or write of the record.
const timeout = 10 * time.Second

// Keeper caches the record. Its methods are safe for concurrent use.
type Keeper struct {
	store Store         // nil keeps the record in memory
	slot  chan struct{} // held by the reader or writer, also across API server calls
	of    Record
}

// New returns an instance that reads the record on first use; a nil Store keeps it in memory.
func New(store Store) *Keeper { return &Keeper{store: store, slot: make(chan struct{}, 1)} }

// Record maps pools to Services.
type Record map[lb.PoolKey]string

// Load returns the record. The caller must not modify it.
func (k *Keeper) Load(ctx context.Context) (Record, error) {
	k.slot <- struct{}{}
	defer func() { <-k.slot }()
	if k.of != nil || k.store == nil {
		return k.of, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	of, err := k.store.ReadPools(ctx)
	if err != nil {
		return nil, fmt.Errorf("the record of pools that were left to others cannot be read: %w", err)
	}
	if k.of = of; of == nil {
		k.of = Record{}
	}
	return k.of, nil
}

// Has reports whether a pool is recorded. It returns true if the record cannot be read: the pool is then not
// taken over.
func (k *Keeper) Has(pool lb.PoolKey) bool {
	record, err := k.Load(context.Background())
	return err != nil || record[pool] != ""
}

// Left maps pools left for foreign members to the Services they were made for.
type Left map[lb.PoolID]string

// Note records the pools left on a load balancer and drops those that Azure no longer has. observed is the load
// balancer after the write.
func (k *Keeper) Note(ctx context.Context, left Left, on lb.LoadBalancerID, observed lb.LoadBalancer) error {
	record, err := k.Load(ctx)
	if err != nil {
		return err
	}
	changed := Record{}
	for pool, service := range left {
		if record[pool.Key()] != service {
			changed[pool.Key()] = service
		}
	}
	for key := range record {
		if key.LoadBalancer() == on.Key() && !slices.ContainsFunc(observed.Pools, func(is lb.Pool) bool { return lb.PoolID{LoadBalancer: on, Name: is.ID.Name}.Key() == key }) {
			changed[key] = ""
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return k.change(ctx, changed)
}

// Forget drops pools from the record.
func (k *Keeper) Forget(ctx context.Context, pools []lb.PoolKey) error {
	if len(pools) == 0 {
		return nil
	}
	changed := Record{}
	for _, key := range pools {
		changed[key] = ""
	}
	return k.change(ctx, changed)
}

func (k *Keeper) change(ctx context.Context, changed Record) error {
	k.slot <- struct{}{}
	defer func() { <-k.slot }()
	if k.store != nil {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := k.store.KeepPools(ctx, changed); err != nil {
			k.of = nil // the write may have succeeded
			return fmt.Errorf("the record of pools that were left to others cannot be written: %w", err)
		}
	}
	next := maps.Clone(k.of)
	if next == nil {
		next = Record{}
	}
	for key, service := range changed {
		if next[key] = service; service == "" {
			delete(next, key)
		}
	}
	k.of = next
	return nil
}

// On returns the recorded pools of a load balancer, sorted and in lower case.
func (r Record) On(on lb.LoadBalancerID) []string {
	var names []string
	for key := range r {
		if key.LoadBalancer() == on.Key() {
			names = append(names, string(key[strings.LastIndexByte(string(key), '/')+1:]))
		}
	}
	slices.Sort(names)
	return names
}

// Of filters names for pools of the load balancer that Weir made for the Service and left.
func (r Record) Of(service string, on lb.LoadBalancerID, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return r[lb.PoolID{LoadBalancer: on, Name: name}.Key()] != service
	})
}
