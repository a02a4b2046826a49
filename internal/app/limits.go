// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/requestlog"
)

const (
	limitsPath = "/limits"
	// maxLimitsBytes is more than 1,000 load balancers need.
	maxLimitsBytes = 4 << 20
)

func serveLimits(list func() []plan.LimitUsage) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !requestlog.IsLocal(r) {
			http.Error(w, "use 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(append([]plan.LimitUsage{}, list()...)) // the client may have closed it
	})
}

// FetchLimits returns how much of Azure's limits is used, as the leader has last observed it.
func FetchLimits(ctx context.Context, w Connection) ([]plan.LimitUsage, error) {
	resp, err := w.fetch(ctx, limitsPath, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Close() }()
	var usages []plan.LimitUsage
	if err := json.NewDecoder(io.LimitReader(resp, maxLimitsBytes)).Decode(&usages); err != nil {
		return nil, fmt.Errorf("the leader's response: %w", err)
	}
	return usages, nil
}

func limitRatios(list func() []plan.LimitUsage) func() []metrics.LimitUsage {
	return func() (usages []metrics.LimitUsage) {
		for _, u := range list() {
			usages = append(usages, metrics.LimitUsage{Resource: u.Resource, Limit: u.Name, Ratio: u.Ratio()})
		}
		return usages
	}
}

// UsagesAction is the action that reads the quotas of a region. It exists at the subscription only.
const UsagesAction = "Microsoft.Network/locations/usages/read"

// ListRegionUsages returns the usage of the subscription's quotas in a region.
func (a Azure) ListRegionUsages(ctx context.Context, location string) ([]plan.RegionUsage, error) {
	return listRegionUsages(ctx, a.Client, a.Config, location)
}

func listRegionUsages(ctx context.Context, client *azure.Client, cfg config.Config, location string) ([]plan.RegionUsage, error) {
	reported, err := azure.ListUsages(ctx, client, cfg.NetworkSubscriptionID(), location)
	usages := make([]plan.RegionUsage, len(reported))
	for i, u := range reported {
		usages[i] = plan.RegionUsage{Name: u.Name, Used: u.Used, Max: u.Limit}
	}
	return usages, err
}
