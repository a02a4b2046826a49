// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli/reach"
)

func newCalls() *cobra.Command {
	var opts app.CallsOptions
	connection := reach.NewFlags()
	connection.Namespace = nil
	var output outputFormat
	var url, namespace string
	cmd := &cobra.Command{
		Use:   "calls",
		Short: "Show the last requests to Azure and the objects that they were sent for",
		Long: `Shows the last requests that a running Weir has sent to Azure Resource Manager, including each retry and
poll, with the request ID that Azure support needs.

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
			if f := cmd.Flags(); url != "" && (f.Changed("kubeconfig") || f.Changed("weir-namespace")) {
				return &app.UsageError{Err: errors.New("--operator-url: does not use the API server: remove --kubeconfig and --weir-namespace")}
			}
			way, err := connection.NewConnection(url, namespace)
			if err != nil {
				return err
			}
			opts.Connection = way
			opts.JSON, opts.Out = output.isJSON(), cmd.OutOrStdout()
			return app.PrintCalls(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&url, "operator-url", "", "where a controller's --operator-bind-address is reached, e.g. http://127.0.0.1:8082; empty: the leader, through the API server")
	f.StringVar(&namespace, "weir-namespace", "weir-system", "where Weir runs")
	f.DurationVar(&opts.Since, "since", 0, "how far back, e.g. 10m; 0 is as far as there are any")
	f.StringVar(&opts.Service, "service", "", "NAMESPACE/NAME of the Service that they were made for")
	f.StringVar(&opts.Pool, "pool", "", "NAMESPACE/NAME of the BackendPool that they were made for")
	f.StringVar(&opts.Resource, "resource", "", "part of the ARM id that they were about")
	f.BoolVar(&opts.Failed, "failed", false, "only those without a response, and those with a status of 400 or more")
	addOutputFlag(cmd, f, &output, "text, or json: one object a line")
	addConnectionFlags(cmd, f, connection, "")
	completeFlag(cmd, "weir-namespace", completeNamespaces(connection))
	completeFlag(cmd, "service", completeNamespaced(connection, newServiceList))
	completeFlag(cmd, "pool", completeNamespaced(connection, newPoolList))
	return cmd
}
