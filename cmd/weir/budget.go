// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli/reach"
)

func newBudget() *cobra.Command {
	connection := reach.NewFlags()
	connection.Namespace = nil
	var output outputFormat
	var url, namespace string
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
			if f := cmd.Flags(); url != "" && (f.Changed("kubeconfig") || f.Changed("weir-namespace")) {
				return &app.UsageError{Err: errors.New("--operator-url: does not use the API server: remove --kubeconfig and --weir-namespace")}
			}
			way, err := connection.NewConnection(url, namespace)
			if err != nil {
				return err
			}
			return app.PrintBudget(cmd.Context(), way, output.isJSON(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&url, "operator-url", "", "where a controller's --operator-bind-address is reached, e.g. http://127.0.0.1:8082; empty: the leader, through the API server")
	f.StringVar(&namespace, "weir-namespace", "weir-system", "where Weir runs")
	addOutputFlag(cmd, f, &output, "text, or json")
	addConnectionFlags(cmd, f, connection, "")
	completeFlag(cmd, "weir-namespace", completeNamespaces(connection))
	return cmd
}
