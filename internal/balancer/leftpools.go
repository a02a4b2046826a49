// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
)

// PoolStore persists for which Services Weir made the pools that it has left to the addresses of others. Without
// it nobody could tell such a pool from one that somebody else made. Only the leader writes.
type PoolStore interface {
	// ReadPools returns the Services, by namespace and name.
	ReadPools(ctx context.Context) (map[lb.PoolKey]string, error)
	// KeepPools changes the Services of some pools; an empty one removes the pool.
	KeepPools(ctx context.Context, changed map[lb.PoolKey]string) error
}

// poolTimeout bounds one read or write of the record.
const poolTimeout = 10 * time.Second

// leftPools caches the record.
type leftPools struct {
	store PoolStore
	slot  chan struct{} // has room for one that reads or writes; it is held across calls of the API server
	of    map[lb.PoolKey]string
}

// load returns the record. The caller does not change it.
func (p *leftPools) load(ctx context.Context) (map[lb.PoolKey]string, error) {
	p.slot <- struct{}{}
	defer func() { <-p.slot }()
	if p.of != nil || p.store == nil {
		return p.of, nil
	}
	ctx, cancel := context.WithTimeout(ctx, poolTimeout)
	defer cancel()
	of, err := p.store.ReadPools(ctx)
	if err != nil {
		return nil, fmt.Errorf("the record of pools that were left to others cannot be read: %w", err)
	}
	p.of = of
	if p.of == nil {
		p.of = map[lb.PoolKey]string{}
	}
	return p.of, nil
}

// LeftToOthers reports whether Weir made a pool for a Service, and left it to the addresses of others; also if
// that cannot be read: then nothing counts as Weir's by chance.
func (b *Balancers) LeftToOthers(pool lb.PoolKey) bool {
	record, err := b.left.load(context.Background())
	return err != nil || record[pool] != ""
}

// keep changes the record.
func (p *leftPools) keep(ctx context.Context, changed map[lb.PoolKey]string) error {
	p.slot <- struct{}{}
	defer func() { <-p.slot }()
	next := maps.Clone(p.of)
	if next == nil {
		next = map[lb.PoolKey]string{}
	}
	for id, service := range changed {
		if next[id] = service; service == "" {
			delete(next, id)
		}
	}
	if maps.Equal(next, p.of) {
		return nil
	}
	if p.store != nil {
		ctx, cancel := context.WithTimeout(ctx, poolTimeout)
		defer cancel()
		if err := p.store.KeepPools(ctx, changed); err != nil {
			p.of = nil // the write may have succeeded
			return fmt.Errorf("the record of pools that were left to others cannot be written: %w", err)
		}
	}
	p.of = next
	return nil
}

// recordLeft records which pools of these jobs stay for others, before their BackendPools go, and removes those
// that Azure does not have any more. It returns the jobs but for those whose pools could not be recorded.
func (l *loadBalancer) recordLeft(ctx context.Context, jobs []*job, p plan.Plan, shown lb.LoadBalancer) []*job {
	record, err := l.left.load(ctx)
	changed, owners := map[lb.PoolKey]string{}, map[string]bool{}
	for _, j := range jobs {
		for _, k := range p.Kept {
			if k.Owner == j.Owner && containsFold(j.OwnPools, k.Pool.Name) && record[k.Pool.Key()] != j.Service {
				changed[k.Pool.Key()] = j.Service
				owners[j.Owner] = true
			}
		}
	}
	for id := range record {
		if id.LoadBalancer() == l.id.Key() && !slices.ContainsFunc(shown.Pools, func(is lb.Pool) bool { return lb.PoolID{LoadBalancer: l.id, Name: is.ID.Name}.Key() == id }) {
			changed[id] = ""
		}
	}
	if err == nil && len(changed) > 0 {
		err = l.left.keep(ctx, changed)
	}
	if err == nil {
		return jobs
	}
	l.cfg.Log.WarnContext(ctx, "pools that stay for others are not on record", "err", err)
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		if owners[j.Owner] {
			j.refused = err
		}
		return owners[j.Owner]
	})
}

// leftTo are the names of the pools on the load balancer that Weir made for a job's Service and left to others.
func (l *loadBalancer) leftTo(j *job, record map[lb.PoolKey]string) []string {
	var names []string
	for _, name := range j.OwnPools {
		if record[lb.PoolID{LoadBalancer: l.id, Name: name}.Key()] == j.Service {
			names = append(names, name)
		}
	}
	return names
}
