// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
)

func newLeave() *cobra.Command {
	connection := cli.NewFlags()
	connection.Namespace = nil
	var opts app.ReleaseOptions
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Let another service controller take the Services without a class",
		Long: `Removes from the cluster what Weir wrote for the Services without a class: finalizers,
records, BackendPools and the labels of nodes. Azure is not called: load balancers, pools and
their members remain unchanged, and another service controller, such as that of the Azure
cloud provider, finds what it would have created. Stop Weir first.

It needs your own permissions: to change Services, Nodes and BackendPools, and to list
Leases and EndpointSlices.`,
		Example: `  # What would be done?
  weir leave --dry-run`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Out, opts.LoadConfig = cmd.OutOrStdout(), connection.REST
			return app.ReleaseCluster(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&opts.DryRun, "dry-run", false, "say what would be done, and write nothing")
	addConnectionFlags(cmd, f, connection, "")
	return cmd
}
