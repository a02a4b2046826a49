// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
)

func newRetry() *cobra.Command {
	connection := cli.NewFlags()
	var output outputFormat
	var all, failed bool
	cmd := &cobra.Command{
		Use:   "retry [POOL|service/NAME|gateway/NAME]...",
		Short: "Retry BackendPools, and failed writes of load balancers, now",
		Long: `Retries BackendPools at once, with a full retry budget. service/NAME retries the pools of a Service, and the write of
its load balancer if that failed or is contested; gateway/NAME retries the latter. After a rejection by Azure, it retries once until
Weir's next own attempt, at most five minutes later. A Retry-After of Azure, and the pace of a pool that changes often,
still apply. It annotates each with your own rights to list and patch them. weir status shows the result.

Exit codes: 0 requested, 1 an object does not exist or could not be patched, 2 a flag is wrong.`,
		Example: `  # The pools of a Service
  weir retry -n shop service/web

  # All that have failed, after a right was given back
  weir retry -A --all-failed`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case failed == (len(args) > 0):
				return &app.UsageError{Err: errors.New("want names of BackendPools, service/NAME or gateway/NAME, or --all-failed")}
			case all && (connection.HasNamespace() || !failed):
				return &app.UsageError{Err: errors.New("-A requires --all-failed, and excludes -n")}
			}
			api, namespace, err := connection.NewClusterClient()
			if err != nil {
				return err
			}
			d := cli.RetryCommand{API: api, Namespace: namespace, Out: cmd.OutOrStdout(), JSON: output.isJSON()}
			if all {
				d.Namespace = ""
			}
			if failed {
				return d.RetryFailed(cmd.Context(), time.Now())
			}
			return d.RetryPools(cmd.Context(), args, time.Now())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&failed, "all-failed", false, "all BackendPools that have failed or wait for a retry, and all Services and Gateways with a failed write")
	f.BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	addOutputFlag(cmd, f, &output, "text, or json")
	addConnectionFlags(cmd, f, connection, "")
	cmd.ValidArgsFunction = completePools(connection)
	return cmd
}
