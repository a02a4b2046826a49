// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
)

func newCalls() *cobra.Command {
	var opts app.CallsOptions
	var output string
	cmd := &cobra.Command{
		Use:   "calls",
		Short: "Show the last requests to Azure, and for whom they were made",
		Long: `Shows the last requests that a running Weir has sent to Azure Resource Manager, each retry and each
poll, with Azure's request id: what its support asks for.

They are in the memory of the leader, 4 MiB of them, which is hours as a rule. Whoever may forward a
port to its pod may read them.`,
		Example: `  kubectl -n weir-system port-forward deployment/weir-controller 8082 &

  # What was asked for a Service in the last ten minutes?
  weir calls --service shop/web --since 10m

  # What failed?
  weir calls --failed -o json | jq .requestID`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return &app.UsageError{Err: fmt.Errorf("-o %q: want text or json", output)}
			}
			opts.JSON, opts.Out = output == "json", cmd.OutOrStdout()
			return app.Calls(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&opts.Server, "server", "http://127.0.0.1:8082", "where the controller's --operator-bind-address is reached")
	f.DurationVar(&opts.Since, "since", 0, "how far back, e.g. 10m; 0 is as far as there are any")
	f.StringVar(&opts.Service, "service", "", "NAMESPACE/NAME of the Service that they were made for")
	f.StringVar(&opts.Pool, "pool", "", "NAMESPACE/NAME of the BackendPool that they were made for")
	f.StringVar(&opts.Resource, "resource", "", "part of the ARM id that they were about")
	f.BoolVar(&opts.Failed, "failed", false, "only those without an answer, and those with a status of 400 or more")
	f.StringVarP(&output, "output", "o", "text", "text, or json: one object a line")
	return cmd
}
