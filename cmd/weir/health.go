// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/pflag"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/cli/status"
)

// healthFlags are the flags of commands that have the leader read Azure's health probes.
type healthFlags struct {
	enabled            bool
	url, weirNamespace string
}

func (h *healthFlags) addTo(f *pflag.FlagSet, usage string) {
	f.BoolVar(&h.enabled, "health", false, usage)
	f.StringVar(&h.url, "operator-url", "", "for --health: where a controller's --operator-bind-address is reached; empty: the leader, through the API server")
	f.StringVar(&h.weirNamespace, "weir-namespace", "weir-system", "for --health: where Weir runs")
}

// newReader returns nil without --health.
func (h *healthFlags) newReader(connection cli.Flags) (status.HealthReader, error) {
	if !h.enabled {
		return nil, nil //nolint:nilnil // no reader is valid
	}
	leader, err := connection.NewConnection(h.url, h.weirNamespace)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, namespace, pool string) ([]app.RuleHealth, error) {
		return app.FetchHealth(ctx, leader, namespace, pool)
	}, nil
}
