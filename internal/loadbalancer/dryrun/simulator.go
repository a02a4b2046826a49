// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// Simulator runs the load balancer code on a Shadow.
type Simulator struct {
	*loadbalancer.LoadBalancers
	Shadow *Shadow
	// Links is nil if Private Link Services are not managed.
	Links    *LinkShadow
	settings service.Settings
	// maxRules and maxLinks limit the rules and Private Link Services of a load balancer.
	maxRules, maxLinks int

	mu      sync.Mutex
	results []loadbalancer.Result
	// requested are the requested owners, in lower case.
	requested    map[string]bool
	resultSignal chan struct{}
}

// New returns a Simulator. It replaces cfg's Azure, Lease, Writes, Done, Log and workers.
func New(cfg loadbalancer.Config, azure Reader) *Simulator {
	r := &Simulator{Shadow: NewShadow(azure), resultSignal: make(chan struct{}, 1), settings: cfg.Settings.Settings, maxRules: cfg.MaxRules, maxLinks: cmp.Or(cfg.MaxPrivateLinks, lb.MaxPrivateLinkServices)}
	cfg.Log = slog.New(slog.DiscardHandler)
	if cfg.PrivateLinks != nil {
		r.Links = newLinkShadow(cfg.PrivateLinks)
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
	cfg.PublicIPGroups = nil
	cfg.Azure, cfg.Workers, cfg.Lease, cfg.Writes, cfg.OnResult = r.Shadow, idleWorkers{}, nil, nil, r.addResult
	cfg.Cluster, cfg.SkipDrain = filledCluster{cfg.Cluster, r}, true
	r.LoadBalancers = loadbalancer.New(cfg)
	return r
}

// readOnlyOwners discards writes; the load balancer code keeps them in memory.
type readOnlyOwners struct{ publicip.OwnerStore }

// WriteOwners implements publicip.OwnerStore.
func (readOnlyOwners) WriteOwners(_ context.Context, r publicip.OwnerRecord) (string, error) {
	return r.Version, nil
}

// readOnlyPrivateIPs is readOnlyOwners for reservations of private addresses.
type readOnlyPrivateIPs struct{ loadbalancer.PrivateIPStore }

// WriteReservations implements loadbalancer.PrivateIPStore.
func (readOnlyPrivateIPs) WriteReservations(_ context.Context, r loadbalancer.PrivateIPRecord) (string, error) {
	return r.Version, nil
}

// readOnlyPools is readOnlyOwners for pools left to other owners.
type readOnlyPools struct{ loadbalancer.LeftPoolStore }

// KeepPools implements loadbalancer.LeftPoolStore.
func (readOnlyPools) KeepPools(context.Context, map[lb.PoolKey]string) error { return nil }

// filledCluster is the cluster after all pools are filled: a plan has no order of writes.
type filledCluster struct {
	loadbalancer.Cluster
	simulator *Simulator
}

// FrontendServices implements Cluster. Owners in the plan are not held.
func (f filledCluster) FrontendServices(owners map[string]bool) map[string]desired.FrontendService {
	services := f.Cluster.FrontendServices(owners)
	for owner, s := range services {
		if f.simulator.isRequested(owner) {
			s.Frozen = false
			services[owner] = s
		}
	}
	return services
}

// NeedsMembers implements Cluster.
func (filledCluster) NeedsMembers(string, lb.LoadBalancerID, service.Pool, lb.Pool) bool {
	return false
}

// idleWorkers have no other writers and nothing waiting.
type idleWorkers struct{}

func (idleWorkers) Lock(context.Context, lb.LoadBalancerID) (func(), error) { return func() {}, nil }

func (idleWorkers) StagePools(_ lb.LoadBalancerID, pools []lb.Pool) ([]lb.Pool, func([]lb.Pool, bool)) {
	return pools, func([]lb.Pool, bool) {}
}

func (s *Simulator) addResult(res loadbalancer.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, res)
	select {
	case s.resultSignal <- struct{}{}:
	default:
	}
}

// RunRequests runs all requests once, and returns their results in order. Its error is ctx's.
func (s *Simulator) RunRequests(ctx context.Context, reqs []loadbalancer.Request) ([]loadbalancer.Result, error) {
	within, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	s.mu.Lock()
	s.requested = map[string]bool{}
	for _, req := range reqs {
		s.requested[strings.ToLower(req.Owner)] = req.Desired != nil
	}
	s.mu.Unlock()
	for _, req := range reqs {
		s.EnsureLoadBalancer(req)
	}
	running.Go(func() { s.Run(within) })
	for s.countResults() < len(reqs) {
		select {
		case <-s.resultSignal:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	at := map[string]int{}
	for i, req := range reqs {
		at[req.Service] = i
	}
	slices.SortFunc(s.results, func(a, b loadbalancer.Result) int { return at[a.Service] - at[b.Service] })
	return s.results, nil
}

// ListConversions returns pools that would change their kind of members.
func (s *Simulator) ListConversions() []plan.DrainingPool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pools []plan.DrainingPool
	for _, res := range s.results {
		pools = append(pools, res.DrainingPools...)
	}
	return pools
}

func (s *Simulator) isRequested(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requested[owner]
}

func (s *Simulator) countResults() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results)
}

// SimulatorFactory share a read cache and limit.
type SimulatorFactory struct {
	cfg   loadbalancer.Config
	cache *readCache
}

// NewSimulatorFactory returns a factory with cfg.
func NewSimulatorFactory(cfg loadbalancer.Config) *SimulatorFactory {
	read := newReadCache(cfg.Azure)
	if cfg.PrivateLinks != nil {
		cfg.PrivateLinks = cachedLinks{cfg.PrivateLinks, read}
	}
	return &SimulatorFactory{cfg: cfg, cache: read}
}

// NewSimulator returns a simulator in the state of a new process.
func (s *SimulatorFactory) NewSimulator() *Simulator { return New(s.cfg, s.cache) }
