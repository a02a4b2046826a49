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

// Rehearsal is Balancers that work on a Shadow: they do all that Balancers do, and nothing
// is written to Azure.
type Rehearsal struct {
	*balancer.Balancers
	Shadow *Shadow
	// Links are the shadow of Private Link Services; nil where they are left alone.
	Links *Links
	// interfaces is true where the pools of Services hold network interfaces. maxRules and maxLinks are how
	// many rules and Private Link Services a load balancer may have.
	interfaces         bool
	maxRules, maxLinks int

	mu      sync.Mutex
	results []balancer.Result
	// played are the owners, in lower case, that are asked for.
	played map[string]bool
	ended  chan struct{}
}

// New returns a Rehearsal. Azure, Lanes, Lease, Writes, Done and Log of the configuration
// are not used: the log would say that is written what is not.
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

// readOnlyOwners reads the owners of public IPs, and keeps no changes: each rehearsal has Balancers of its
// own, which remember them.
type readOnlyOwners struct{ publicip.OwnerStore }

// WriteOwners implements publicip.OwnerStore.
func (readOnlyOwners) WriteOwners(_ context.Context, r publicip.OwnerRecord) (string, error) {
	return r.Version, nil
}

// readOnlyPrivateIPs is to reservations of private addresses what readOnlyOwners is to owners.
type readOnlyPrivateIPs struct{ privateip.Store }

// WriteReservations implements privateip.Store.
func (readOnlyPrivateIPs) WriteReservations(_ context.Context, r privateip.Record) (string, error) {
	return r.Version, nil
}

// readOnlyPools is to the record of pools that were left to others what readOnlyOwners is to owners.
type readOnlyPools struct{ leftpool.Store }

// KeepPools implements leftpool.Store.
func (readOnlyPools) KeepPools(context.Context, map[lb.PoolKey]string) error { return nil }

// patient is a cluster as it will be when all pools are filled: a rehearsal shows the end, and not
// which of two writes comes first.
type patient struct {
	balancer.Cluster
	of *Rehearsal
}

// Sharers implements Cluster: whoever is rehearsed has what it asks for.
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

// freeLanes are those where nobody else writes, and nothing waits.
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

// Play works on all requests together, and returns what came of them, in their order. An
// error is that of the context. It is for one call.
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

// Conversions are the pools that would go from one kind of members to the other.
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

// Rehearsals are rehearsals with the same settings. What one of them has read the next ones need
// not read for a while, and all together have a share of the reads that Azure takes.
type Rehearsals struct {
	cfg   balancer.Config
	azure *readings
}

// NewRehearsals returns the rehearsals of Balancers with that configuration.
func NewRehearsals(cfg balancer.Config) *Rehearsals {
	read := newReadings(cfg.Azure)
	if cfg.PrivateLinks != nil {
		cfg.PrivateLinks = linkReadings{cfg.PrivateLinks, read}
	}
	return &Rehearsals{cfg: cfg, azure: read}
}

// Next returns one that knows no more than a process that has just begun.
func (r *Rehearsals) Next() *Rehearsal { return New(r.cfg, r.azure) }
