// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/app/reach"
	"weir.dev/weir/internal/app/status"
)

// exitProblems is the exit code if there are problems.
const exitProblems exitCode = 3

func newStatus() *cobra.Command {
	var kubeconfig, namespace, output string
	var all, watch bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is out of sync, since when, which objects are affected, and how to fix it",
		Long: `Shows what is wrong with the BackendPools and Services of Weir, grouped by cause, the most common cause first,
since when, and how to fix it. Updates in progress are counted, and count as wrong after ten minutes. It reads from
the API server with your own rights to get and list BackendPools and Services, and Leases of all namespaces to
find the leader.

Exit codes: 0 nothing is wrong, 1 the API server cannot be reached, 2 a flag is wrong,
3 something is wrong.`,
		Example: `  # Is all well?
  weir status -A

  # What is wrong in one namespace, and when it ends
  weir status -n shop --watch

  # Which pools do not get what they want for lack of rights?
  weir status -A -o json | jq '.causes[] | select(.name == "AuthorizationFailed") | .of[].name'`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return &app.UsageError{Err: fmt.Errorf("-o %q: want text or json", output)}
			}
			if all && namespace != "" {
				return &app.UsageError{Err: fmt.Errorf("-A and -n %s: want one of them", namespace)}
			}
			api, current, err := reach.NewClusterClient(kubeconfig)
			if err != nil {
				return err
			}
			d := status.Command{API: api, Namespace: namespace, Out: cmd.OutOrStdout(), JSON: output == "json"}
			if namespace == "" && !all {
				d.Namespace = current
			}
			if watch {
				return d.WatchReport(cmd.Context())
			}
			level, err := d.PrintReport(cmd.Context())
			if err == nil && !level {
				return exitProblems
			}
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	f.StringVarP(&namespace, "namespace", "n", "", "of this namespace; empty: of that of the current context")
	f.BoolVarP(&watch, "watch", "w", false, "print it again whenever it changes")
	f.StringVarP(&output, "output", "o", "text", "text, or json")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; empty: $KUBECONFIG or ~/.kube/config")
	return cmd
}
