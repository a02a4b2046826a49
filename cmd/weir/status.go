// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/cli/status"
)

// exitProblems is the exit code if there are problems.
const exitProblems exitCode = 3

func newStatus() *cobra.Command {
	connection := cli.NewFlags()
	var output outputFormat
	var all, watch bool
	var health healthFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is out of sync, since when, which objects are affected, and how to fix it",
		Long: `Shows what is wrong with BackendPools, Services, Gateways and Provisions, grouped by cause, the most common cause first,
since when, and how to fix it. A Service of type LoadBalancer that no controller has begun to serve within 30 seconds is
wrong. Updates in progress are counted, and count as wrong after ten minutes. It reads from the API server with your
own rights to list BackendPools and Services. With the rights to list Leases and Deployments of all namespaces it also
shows whether Weir runs.

With --health it also names Services without a member that is up according to Azure's health probes. The leader reads up to 20
pools, one after the other; each read counts as a write in Azure and can take ten seconds. It needs what weir explain --health needs.

Exit codes: 0 nothing is wrong, 1 the API server cannot be reached or the namespace does not exist, 2 a flag is wrong,
3 something is wrong. --watch ends with Ctrl-C and 0.`,
		Example: `  # Is all well?
  weir status -A

  # What is wrong in one namespace, and when it ends
  weir status -n shop --watch

  # Which pools do not get what they want for lack of rights?
  weir status -A -o json | jq '.causes[] | select(.name == "AuthorizationFailed") | .of[].name'`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && connection.HasNamespace() {
				return &app.UsageError{Err: fmt.Errorf("-A and -n %s: want one of them", *connection.Namespace)}
			}
			api, namespace, err := connection.NewClusterClient()
			if err != nil {
				return err
			}
			d := status.Command{API: api, Namespace: namespace, Out: cmd.OutOrStdout(), JSON: output.isJSON(), Color: supportsColor()}
			if all {
				d.Namespace = ""
			}
			if watch && health.enabled {
				return &app.UsageError{Err: errors.New("--watch and --health: want one of them, because each read of the health counts as a write")}
			}
			if d.Health, err = health.newReader(connection); err != nil {
				return err
			}
			if watch {
				return d.WatchReport(cmd.Context())
			}
			inSync, err := d.PrintReport(cmd.Context())
			if err == nil && !inSync {
				return exitProblems
			}
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	f.BoolVarP(&watch, "watch", "w", false, "print it again whenever it changes")
	health.addTo(f, "read from Azure whether the members of a Service are all down")
	addOutputFlag(cmd, f, &output, "text, or json")
	addConnectionFlags(cmd, f, connection, "")
	return cmd
}
