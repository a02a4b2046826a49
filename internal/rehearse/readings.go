// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

const (
	// readingLasts is how long reads are cached for concurrent dry runs.
	readingLasts = 5 * time.Second
	// The rate and burst of reads: a tenth of Azure Resource Manager's limits, because
	// reconciliation has priority.
	rehearsalsPerSecond = 2.5
	rehearsalsSaved     = 25
)

// CodeRehearsed is the fault code beyond that limit.
const CodeRehearsed = "RehearsalsWait"

// readings caches reads of Azure.
type readings struct {
	of    Reader
	slot  chan struct{}
	kept  map[string]reading
	share allowance
}

// reading is a cached result, or that the resource does not exist.
type reading struct {
	shown any
	err   error
	until time.Time
}

func newReadings(of Reader) *readings {
	return &readings{of: of, slot: make(chan struct{}, 1), kept: map[string]reading{}}
}

// allowance is the used part of the limit. Zero is unused.
type allowance struct {
	used float64
	at   time.Time
}

// take uses one read, or returns when one is available.
func (a allowance) take(now time.Time) (left allowance, until time.Time) {
	used := max(0, a.used-now.Sub(a.at).Seconds()*rehearsalsPerSecond)
	if over := used + 1 - rehearsalsSaved; over > 0 {
		return a, now.Add(time.Duration(over / rehearsalsPerSecond * float64(time.Second)))
	}
	return allowance{used + 1, now}, time.Time{}
}

// once returns a cached result, or reads it.
func once[T any](ctx context.Context, r *readings, read func() (T, error), name ...string) (T, error) {
	var none T
	select {
	case r.slot <- struct{}{}:
		defer func() { <-r.slot }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	key, now := strings.ToLower(strings.Join(name, "/")), time.Now()
	maps.DeleteFunc(r.kept, func(_ string, known reading) bool { return !now.Before(known.until) })
	if known, ok := r.kept[key]; ok {
		shown, _ := known.shown.(T)
		return shown, known.err
	}
	left, until := r.share.take(now)
	if !until.IsZero() {
		return none, &fault.Fault{
			Class: fault.Retriable, Code: CodeRehearsed, Reason: "rehearsals", RetryAt: until,
			Err: errors.New("not read: dry runs have used up their share of Azure's reads"),
		}
	}
	r.share = left
	shown, err := read()
	if f := fault.From(err); f == nil || f.Class == fault.Stale {
		r.kept[key] = reading{shown, err, time.Now().Add(readingLasts)}
	}
	return shown, err
}

// GetLoadBalancer implements Reader.
func (r *readings) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	return once(ctx, r, func() (lb.LoadBalancer, error) { return r.of.GetLoadBalancer(ctx, id) }, "load balancer", string(id.Key()))
}

// ListLoadBalancers implements Reader.
func (r *readings) ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error) {
	return once(ctx, r, func() ([]lb.LoadBalancer, error) { return r.of.ListLoadBalancers(ctx, subscription, resourceGroup) },
		"load balancers", subscription, resourceGroup)
}

// ListPublicIPs implements Reader.
func (r *readings) ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error) {
	return once(ctx, r, func() ([]lb.PublicIP, error) { return r.of.ListPublicIPs(ctx, subscription, resourceGroup) },
		"public IPs", subscription, resourceGroup)
}

// Machines implements Reader.
func (r *readings) Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return once(ctx, r, func() (lb.Pool, error) { return r.of.Machines(ctx, pool) }, "machines", string(pool.ID.Key()), pool.Etag)
}

// GetSecurityGroup implements Reader.
func (r *readings) GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error) {
	return once(ctx, r, func() (lb.SecurityGroup, error) { return r.of.GetSecurityGroup(ctx, id) }, "security group", id.Key())
}
