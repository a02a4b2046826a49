// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

const (
	// cacheTTL is how long reads are cached for concurrent dry runs.
	cacheTTL = 5 * time.Second
	// The rate and burst of reads: a tenth of Azure Resource Manager's limits, because
	// reconciliation has priority.
	readsPerSecond = 2.5
	readBurst      = 25
)

// CodeReadLimit is the fault code beyond that limit.
const CodeReadLimit = "RehearsalsWait"

// readCache caches reads of Azure.
type readCache struct {
	reader  Reader
	mu      chan struct{}
	entries map[string]cachedRead
	limit   readLimit
}

// cachedRead is a cached result, or that the resource does not exist.
type cachedRead struct {
	value any
	err   error
	until time.Time
}

func newReadCache(of Reader) *readCache {
	return &readCache{reader: of, mu: make(chan struct{}, 1), entries: map[string]cachedRead{}}
}

// readLimit is the used part of the limit. Zero is unused.
type readLimit struct {
	used float64
	at   time.Time
}

// takeRead uses one read, or returns when one is available.
func (r readLimit) takeRead(now time.Time) (rest readLimit, until time.Time) {
	used := max(0, r.used-now.Sub(r.at).Seconds()*readsPerSecond)
	if over := used + 1 - readBurst; over > 0 {
		return r, now.Add(time.Duration(over / readsPerSecond * float64(time.Second)))
	}
	return readLimit{used + 1, now}, time.Time{}
}

// readCached returns a cached result, or reads it.
func readCached[T any](ctx context.Context, r *readCache, read func() (T, error), name ...string) (T, error) {
	var none T
	select {
	case r.mu <- struct{}{}:
		defer func() { <-r.mu }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	key, now := strings.ToLower(strings.Join(name, "/")), time.Now()
	maps.DeleteFunc(r.entries, func(_ string, known cachedRead) bool { return !now.Before(known.until) })
	if known, ok := r.entries[key]; ok {
		shown, _ := known.value.(T)
		return shown, known.err
	}
	rest, until := r.limit.takeRead(now)
	if !until.IsZero() {
		return none, &armerror.Fault{
			Class: armerror.Retriable, Code: CodeReadLimit, Reason: "rehearsals", RetryAt: until,
			Err: errors.New("not read: dry runs have used up their share of Azure's reads"),
		}
	}
	r.limit = rest
	shown, err := read()
	if f := armerror.FromError(err); f == nil || f.Class == armerror.Stale {
		r.entries[key] = cachedRead{shown, err, time.Now().Add(cacheTTL)}
	}
	return shown, err
}

// GetLoadBalancer implements Reader.
func (r *readCache) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	return readCached(ctx, r, func() (lb.LoadBalancer, error) { return r.reader.GetLoadBalancer(ctx, id) }, "load balancer", string(id.Key()))
}

// ListLoadBalancers implements Reader.
func (r *readCache) ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error) {
	return readCached(ctx, r, func() ([]lb.LoadBalancer, error) { return r.reader.ListLoadBalancers(ctx, subscription, resourceGroup) },
		"load balancers", subscription, resourceGroup)
}

// ListPublicIPs implements Reader.
func (r *readCache) ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error) {
	return readCached(ctx, r, func() ([]lb.PublicIP, error) { return r.reader.ListPublicIPs(ctx, subscription, resourceGroup) },
		"public IPs", subscription, resourceGroup)
}

// ResolveMachines implements Reader.
func (r *readCache) ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return readCached(ctx, r, func() (lb.Pool, error) { return r.reader.ResolveMachines(ctx, pool) }, "machines", string(pool.ID.Key()), pool.Etag)
}

// GetSecurityGroup implements Reader.
func (r *readCache) GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error) {
	return readCached(ctx, r, func() (lb.SecurityGroup, error) { return r.reader.GetSecurityGroup(ctx, id) }, "security group", id.Key())
}
