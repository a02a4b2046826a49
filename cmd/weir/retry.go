// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/app/reach"
	"weir.dev/weir/internal/app/retry"
)

func newRetry() *cobra.Command {
	var kubeconfig, namespace, output string
	var all, failed bool
	cmd := &cobra.Command{
		Use:   "retry [POOL|service/NAME]...",
		Short: "Retry BackendPools now",
		Long: `Retries BackendPools at once, with a full retry budget. The controller still waits for a Retry-After of Azure, and
for the pace of a pool that changes often. It writes an annotation on each, with your own rights to list and patch
BackendPools. weir status shows the result.

Exit codes: 0 requested, 1 a BackendPool does not exist or could not be patched, 2 a flag is wrong.`,
		Example: `  # The pools of a Service
  weir retry -n shop service/web

  # All that have failed, after a right was given back
  weir retry -A --all-failed`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case output != "text" && output != "json":
				return &app.UsageError{Err: fmt.Errorf("-o %q: want text or json", output)}
			case failed == (len(args) > 0):
				return &app.UsageError{Err: errors.New("want names of BackendPools, or service/NAME, or --all-failed")}
			case all && (namespace != "" || !failed):
				return &app.UsageError{Err: errors.New("-A requires --all-failed, and excludes -n")}
			}
			api, current, err := reach.NewClusterClient(kubeconfig)
			if err != nil {
				return err
			}
			d := retry.Command{API: api, Namespace: namespace, Out: cmd.OutOrStdout(), JSON: output == "json"}
			if namespace == "" && !all {
				d.Namespace = current
			}
			if failed {
				return d.RetryFailed(cmd.Context(), time.Now())
			}
			return d.RetryPools(cmd.Context(), args, time.Now())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&failed, "all-failed", false, "all that have failed, or wait for a retry")
	f.BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	f.StringVarP(&namespace, "namespace", "n", "", "of this namespace; empty: of that of the current context")
	f.StringVarP(&output, "output", "o", "text", "text, or json")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; empty: $KUBECONFIG or ~/.kube/config")
	return cmd
}
