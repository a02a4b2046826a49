// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/leftpool"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/privateip"
	"weir.dev/weir/internal/privatelink"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
)

// Rehearsal runs the load balancer code on a Shadow.
type Rehearsal struct {
	*balancer.Balancers
	Shadow *Shadow
	// Links is nil if Private Link Services are not managed.
	Links *Links
	// interfaces is true if pools hold network interfaces.
	interfaces bool
	// maxRules and maxLinks limit the rules and Private Link Services of a load balancer.
	maxRules, maxLinks int

	mu      sync.Mutex
	results []balancer.Result
	// played are the requested owners, in lower case.
	played map[string]bool
	ended  chan struct{}
}

// New returns a Rehearsal. It replaces cfg's Azure, Lease, Writes, Done, Log and workers.
func New(cfg balancer.Config, azure Reader) *Rehearsal {
	r := &Rehearsal{Shadow: NewShadow(azure), ended: make(chan struct{}, 1), interfaces: cfg.Interfaces, maxRules: cfg.MostRules, maxLinks: cmp.Or(cfg.MostPrivateLinks, lb.MostPrivateLinkServices)}
	cfg.Log = slog.New(slog.DiscardHandler)
	if cfg.PrivateLinks != nil {
		r.Links = newLinks(cfg.PrivateLinks)
		cfg.PrivateLinks = r.Links
	}
	if cfg.Owners != nil {
		cfg.Owners = readOnlyOwners{cfg.Owners}
	}
	if cfg.PrivateIPs != nil {
		cfg.PrivateIPs = readOnlyPrivateIPs{cfg.PrivateIPs}
	}
	if cfg.LeftPools != nil {
		cfg.LeftPools = readOnlyPools{cfg.LeftPools}
	}
	cfg.Azure, cfg.Lanes, cfg.Lease, cfg.Writes, cfg.Done = r.Shadow, freeLanes{}, nil, nil, r.hear
	cfg.Cluster, cfg.Emptied = patient{cfg.Cluster, r}, true
	r.Balancers = balancer.New(cfg)
	return r
}

// readOnlyOwners discards writes; the load balancer code keeps them in memory.
type readOnlyOwners struct{ publicip.OwnerStore }

// WriteOwners implements publicip.OwnerStore.
func (readOnlyOwners) WriteOwners(_ context.Context, r publicip.OwnerRecord) (string, error) {
	return r.Version, nil
}

// readOnlyPrivateIPs is readOnlyOwners for reservations of private addresses.
type readOnlyPrivateIPs struct{ privateip.Store }

// WriteReservations implements privateip.Store.
func (readOnlyPrivateIPs) WriteReservations(_ context.Context, r privateip.Record) (string, error) {
	return r.Version, nil
}

// readOnlyPools is readOnlyOwners for pools left to other owners.
type readOnlyPools struct{ leftpool.Store }

// KeepPools implements leftpool.Store.
func (readOnlyPools) KeepPools(context.Context, map[lb.PoolKey]string) error { return nil }

// patient is the cluster after all pools are filled: a plan has no order of writes.
type patient struct {
	balancer.Cluster
	of *Rehearsal
}

// Sharers implements Cluster. Owners in the plan are not held.
func (p patient) Sharers(owners map[string]bool) map[string]privatelink.Sharer {
	all := p.Cluster.Sharers(owners)
	for owner, s := range all {
		if p.of.plays(owner) {
			s.Held = false
			all[owner] = s
		}
	}
	return all
}

// Awaits implements Cluster.
func (patient) Awaits(string, lb.LoadBalancerID, service.Pool, lb.Pool) bool { return false }

// freeLanes have no other writers and nothing waiting.
type freeLanes struct{}

func (freeLanes) Lock(context.Context, lb.LoadBalancerID) (func(), error) { return func() {}, nil }

func (freeLanes) Carry(_ context.Context, _ lb.LoadBalancerID, pools []lb.Pool) ([]lb.Pool, func([]lb.Pool, bool)) {
	return pools, func([]lb.Pool, bool) {}
}

func (r *Rehearsal) hear(res balancer.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, res)
	select {
	case r.ended <- struct{}{}:
	default:
	}
}

// Play runs all requests once, and returns their results in order. Its error is ctx's.
func (r *Rehearsal) Play(ctx context.Context, reqs []balancer.Request) ([]balancer.Result, error) {
	within, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	r.mu.Lock()
	r.played = map[string]bool{}
	for _, req := range reqs {
		r.played[strings.ToLower(req.Owner)] = req.Desired != nil
	}
	r.mu.Unlock()
	for _, req := range reqs {
		r.Ensure(req)
	}
	running.Go(func() { r.Run(within) })
	for r.heard() < len(reqs) {
		select {
		case <-r.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	at := map[string]int{}
	for i, req := range reqs {
		at[req.Service] = i
	}
	slices.SortFunc(r.results, func(a, b balancer.Result) int { return at[a.Service] - at[b.Service] })
	return r.results, nil
}

// Conversions returns pools that would change their kind of members.
func (r *Rehearsal) Conversions() []plan.Emptying {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []plan.Emptying
	for _, res := range r.results {
		all = append(all, res.Emptying...)
	}
	return all
}

func (r *Rehearsal) plays(owner string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.played[owner]
}

func (r *Rehearsal) heard() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.results)
}

// Rehearsals share a read cache and limit.
type Rehearsals struct {
	cfg   balancer.Config
	azure *readings
}

// NewRehearsals returns a factory with cfg.
func NewRehearsals(cfg balancer.Config) *Rehearsals {
	read := newReadings(cfg.Azure)
	if cfg.PrivateLinks != nil {
		cfg.PrivateLinks = linkReadings{cfg.PrivateLinks, read}
	}
	return &Rehearsals{cfg: cfg, azure: read}
}

// Next returns a simulator in the state of a new process.
func (r *Rehearsals) Next() *Rehearsal { return New(r.cfg, r.azure) }
