// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/ratelimit"
)

const (
	// quotaDelay delays the first read after a start, until the load balancers are known.
	quotaDelay    = time.Minute
	quotaInterval = time.Hour
	// quotaTimeout also bounds the wait for a closed gate.
	quotaTimeout = 5 * time.Minute
)

// regionQuotas holds the usages of the quotas of the load balancers' regions, as last read. A region that could not be read has
// none. It is safe for concurrent use.
type regionQuotas struct {
	regions func() []string
	read    func(ctx context.Context, region string) ([]plan.RegionUsage, error)
	log     *slog.Logger

	mu     sync.Mutex
	usages []plan.LimitUsage
}

func newRegionQuotas(o Options, cfg config.Config, client *azure.Client, regions func() []string) *regionQuotas {
	return &regionQuotas{regions: regions, log: o.Log, read: func(ctx context.Context, region string) ([]plan.RegionUsage, error) {
		return listRegionUsages(ctx, client, cfg, region)
	}}
}

// ListUsages returns the usages as last read.
func (q *regionQuotas) ListUsages() []plan.LimitUsage {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.usages)
}

// Run reads the usages every hour until the context is done. It logs the first failure of a region.
func (q *regionQuotas) Run(ctx context.Context) {
	failed := map[string]bool{}
	for wait := quotaDelay; ratelimit.Sleep(ctx, wait+rand.N(wait/10)) == nil; wait = quotaInterval { //nolint:gosec // jitter
		var items []plan.LimitUsage
		for _, region := range q.regions() {
			usages, err := q.readRegion(ctx, region)
			if err != nil && ctx.Err() == nil && !failed[region] {
				q.log.WarnContext(ctx, "the quotas of the region are not known, so that weir_limit_usage_ratio lacks them; Weir reads them every hour: if Azure refuses it, permit "+UsagesAction+" on the subscription",
					"region", region, "err", err)
			}
			failed[region] = err != nil
			items = append(items, usages...)
		}
		q.mu.Lock()
		q.usages = items
		q.mu.Unlock()
	}
}

func (q *regionQuotas) readRegion(ctx context.Context, region string) ([]plan.LimitUsage, error) {
	ctx, cancel := context.WithTimeout(ctx, quotaTimeout)
	defer cancel()
	reported, err := q.read(ctx, region)
	if err != nil {
		return nil, err
	}
	return plan.ListRegionUsages(region, reported), nil
}
