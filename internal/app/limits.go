// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"weir.dev/weir/internal/azure/usages"
	"weir.dev/weir/internal/loadbalancer/limit"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/requestlog/endpoint"
)

const (
	limitsPath = "/limits"
	// maxLimitsBytes is more than 1,000 load balancers need.
	maxLimitsBytes = 4 << 20
)

func serveLimits(list func() []limit.Usage) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !endpoint.IsLocal(r) {
			http.Error(w, "use 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(append([]limit.Usage{}, list()...)) // the client may have closed it
	})
}

// FetchLimits returns how much of Azure's limits is used, as the leader has last observed it.
func FetchLimits(ctx context.Context, w Connection) ([]limit.Usage, error) {
	answer, err := w.fetch(ctx, limitsPath, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Close() }()
	var all []limit.Usage
	if err := json.NewDecoder(io.LimitReader(answer, maxLimitsBytes)).Decode(&all); err != nil {
		return nil, fmt.Errorf("the leader's response: %w", err)
	}
	return all, nil
}

func limitRatios(list func() []limit.Usage) func() []metrics.LimitUsage {
	return func() (all []metrics.LimitUsage) {
		for _, u := range list() {
			all = append(all, metrics.LimitUsage{Resource: u.Resource, Limit: u.Name, Ratio: u.Ratio()})
		}
		return all
	}
}

// ListRegionUsages returns the usage of the subscription's quotas in a region.
func (a Azure) ListRegionUsages(ctx context.Context, location string) ([]limit.RegionUsage, error) {
	reported, err := usages.ListUsages(ctx, a.Client, a.Config.SubscriptionID, location)
	all := make([]limit.RegionUsage, len(reported))
	for i, u := range reported {
		all[i] = limit.RegionUsage{Name: u.Name, Used: u.Used, Max: u.Limit}
	}
	return all, err
}
