// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
)

func newLeave() *cobra.Command {
	var opts app.ReleaseOptions
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Let another service controller take the Services without a class",
		Long: `Takes out of the cluster what Weir wrote for the Services without a class: finalizers,
records, BackendPools and the labels of nodes. Azure is not called: load balancers, pools and
their members stay as they are, and another service controller, such as that of the Azure
cloud provider, finds what it would have made. Stop Weir first.

It needs the rights of a person: to change Services, Nodes and BackendPools, and to list
Leases and EndpointSlices.`,
		Example: `  # What would be done?
  weir leave --dry-run`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Out = cmd.OutOrStdout()
			return app.ReleaseCluster(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&opts.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the pod's service account, else $KUBECONFIG or ~/.kube/config")
	f.BoolVar(&opts.DryRun, "dry-run", false, "say what would be done, and write nothing")
	return cmd
}
