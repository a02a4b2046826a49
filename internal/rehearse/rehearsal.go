// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Rehearsal is Balancers that work on a Shadow: they do all that Balancers do, and nothing
// is written to Azure.
type Rehearsal struct {
	*balancer.Balancers
	Shadow *Shadow

	mu      sync.Mutex
	results []balancer.Result
	ended   chan struct{}
}

// New returns a Rehearsal. Azure, Lanes, Lease, Done and Log of the configuration
// are not used: the log would say that is written what is not.
func New(cfg balancer.Config, azure Reader) *Rehearsal {
	r := &Rehearsal{Shadow: NewShadow(azure), ended: make(chan struct{}, 1)}
	cfg.Log = slog.New(slog.DiscardHandler)
	cfg.Azure, cfg.Lanes, cfg.Lease, cfg.Done = r.Shadow, freeLanes{}, nil, r.hear
	cfg.Cluster = patient{cfg.Cluster}
	r.Balancers = balancer.New(cfg)
	return r
}

// patient is a cluster as it will be when all pools are filled: a rehearsal shows the end, and not
// which of two writes comes first.
type patient struct{ balancer.Cluster }

// Awaits implements Cluster.
func (patient) Awaits(string, lb.LoadBalancerID, service.Pool) bool { return false }

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
	return &Rehearsals{cfg: cfg, azure: newReadings(cfg.Azure)}
}

// Next returns one that knows no more than a process that has just begun.
func (r *Rehearsals) Next() *Rehearsal { return New(r.cfg, r.azure) }
