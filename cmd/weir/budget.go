// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
)

func newBudget() *cobra.Command {
	leader := newLeaderFlags()
	var output outputFormat
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show the write quota of the subscription and what Weir spends",
		Long: `Shows the writes of a running Weir in the last five minutes, for what it sent them, its share of the
subscription's quota and why, and an estimate of other clients.

Weir finds the leader as weir calls does, and needs the same rights.

Exit codes: 0 done, 1 failed, 2 a flag is wrong.`,
		Example: `  # How much of the quota is left, and why?
  weir budget

  # The share of each subscription
  weir budget -o json | jq '.subscriptions[] | {subscription, share, reason}'

  # Of a Weir outside the cluster, on this machine
  weir budget --operator-url http://127.0.0.1:8082`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := leader.connect(cmd)
			if err != nil {
				return err
			}
			return app.PrintBudget(cmd.Context(), conn, output.isJSON(), cmd.OutOrStdout())
		},
	}
	leader.add(cmd)
	f := cmd.Flags()
	addOutputFlag(cmd, f, &output, "text, or json")
	addConnectionFlags(cmd, f, leader.Flags, "")
	return cmd
}
