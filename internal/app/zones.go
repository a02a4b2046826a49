// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/skumigration/phase"
	"weir.dev/weir/internal/zones"
)

// newRegions returns the zones of the regions; nil if azure.json requests none, so that nothing is read.
func newRegions(o Options, cfg config.Config, client *azure.Client) *zones.Regions {
	choice, log := cfg.ZoneChoice(), o.Log
	if choice.IsSet && len(choice.Zones) == 0 {
		return nil
	}
	if choice.IsSet { // then the zones of the region are only for the check of the choice
		log = slog.New(slog.DiscardHandler)
	}
	return zones.NewRegions(func(ctx context.Context) (map[string][]string, error) {
		return azure.ListZones(ctx, client, cfg.NetworkSubscriptionID())
	}, log)
}

// migrationZones returns the zones of private frontends that a migration creates. Wrong zones in azure.json do not stop
// it: then it uses all of the region.
func migrationZones(cfg config.Config, regions *zones.Regions) func(context.Context, string) phase.RegionZones {
	return func(ctx context.Context, location string) phase.RegionZones {
		region := regions.Region(ctx, location)
		picked, err := region.Pick(cfg.ZoneChoice())
		if err != nil {
			picked = region.Zones
		}
		return phase.RegionZones{Default: picked, All: region.Zones}
	}
}
