// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli/provisioning"
	"weir.dev/weir/internal/provisioning/policy"
)

func newBackoffTable() *cobra.Command {
	table := provisioning.RetrySchedule{Policy: policy.DefaultPolicy()}
	var output outputFormat
	cmd := &cobra.Command{
		Use:   "backoff-table",
		Short: "Print how often provisioning is retried by a policy",
		Long: `Prints how many retries of a Provision begin within a day, a week, a month and a year, compared with a
policy for links that are down for months, and the wait before each retry. It needs no cluster.`,
		Example: `  # By default:
  weir backoff-table

  # 58 retries in a day, 7,561 in a year:
  weir backoff-table --factor 1.048 --max-interval 48m --attempt 22m --retries 100`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &app.UsageError{Err: fmt.Errorf("%s knows no %q: run %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := table.Policy.Validate(); err != nil {
				return &app.UsageError{Err: err}
			}
			if table.Attempt < time.Second {
				return &app.UsageError{Err: fmt.Errorf("--attempt %s: want at least 1s", table.Attempt)}
			}
			table.JSON = output.isJSON()
			return table.WriteTable(cmd.OutOrStdout())
		},
	}
	f, p := cmd.Flags(), &table.Policy
	f.SortFlags = false
	f.IntVar(&p.Retries, "retries", p.Retries, "how many attempts follow the first one")
	f.DurationVar(&p.Initial, "initial-interval", p.Initial, "the wait before the first retry")
	f.Float64Var(&p.Factor, "factor", p.Factor, "how many times as long as the one before each wait is")
	f.DurationVar(&p.MaxInterval, "max-interval", p.MaxInterval, "the longest wait")
	f.DurationVar(&p.Horizon, "horizon", p.Horizon, "bound on all waits together; 0 is none")
	f.DurationVar(&table.Attempt, "attempt", policy.DefaultPolicy().AttemptTimeout, "how long each attempt takes until it fails")
	addOutputFlag(cmd, f, &output, "text, or json")
	return cmd
}
