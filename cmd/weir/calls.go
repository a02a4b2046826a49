// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
)

func newCalls() *cobra.Command {
	var opts app.CallsOptions
	leader := newLeaderFlags()
	var output outputFormat
	cmd := &cobra.Command{
		Use:   "calls",
		Short: "Show the last requests to Azure and the objects that they were sent for",
		Long: `Shows the last requests that a running Weir has sent to Azure Resource Manager, including each retry and
poll; of those that failed, with the request ID that Azure support needs. -o json has all IDs. On a terminal, long
names are shortened to its width.

The leader keeps the last 4 MiB of requests in memory, usually several hours. Weir finds the leader's pod by
its Lease and connects through the API server. You need the rights to get the Lease and to forward a port to the pod.`,
		Example: `  # Which requests were sent for a Service in the last ten minutes?
  weir calls --service shop/web --since 10m

  # What failed?
  weir calls --failed -o json | jq .requestID

  # Of a Weir outside the cluster, on this machine
  weir calls --operator-url http://127.0.0.1:8082`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := leader.connect(cmd)
			if err != nil {
				return err
			}
			opts.Connection = conn
			opts.JSON, opts.Out, opts.Width = output.isJSON(), cmd.OutOrStdout(), terminalWidth()
			return app.PrintCalls(cmd.Context(), opts)
		},
	}
	leader.add(cmd)
	f := cmd.Flags()
	f.DurationVar(&opts.Since, "since", 0, "how far back, e.g. 10m; 0 is as far as there are any")
	f.StringVar(&opts.Service, "service", "", "NAMESPACE/NAME of the Service that they were made for")
	f.StringVar(&opts.Pool, "pool", "", "NAMESPACE/NAME of the BackendPool that they were made for")
	f.StringVar(&opts.Resource, "resource", "", "part of the ARM id that they were about")
	f.BoolVar(&opts.Failed, "failed", false, "only those without a response, and those with a status of 400 or more")
	addOutputFlag(cmd, f, &output, "text, or json: one object a line")
	addConnectionFlags(cmd, f, leader.Flags, "")
	completeFlag(cmd, "service", completeNamespaced(leader.Flags, newServiceList))
	completeFlag(cmd, "pool", completeNamespaced(leader.Flags, newPoolList))
	return cmd
}
