// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/app/explain"
	"weir.dev/weir/internal/app/reach"
)

func newExplain() *cobra.Command {
	var kubeconfig, namespace, output string
	cmd := &cobra.Command{
		Use:   "explain (service|pool|node) NAME",
		Short: "Explain a Service, a BackendPool or a node: its path through Azure, what is missing, what happened",
		Long: `Shows the path of a Service from its addresses to its nodes, the members of a BackendPool, or the pools of
a node: what is missing, what happened, what happens next, and how to fix it. It reads from the API server
with your own rights.`,
		Example: `  weir explain service web -n shop
  weir explain pool web.kubernetes -n shop
  weir explain node aks-nodepool1-12345678-vmss000000`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return &app.UsageError{Err: fmt.Errorf("usage: weir %s", cmd.Use)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return &app.UsageError{Err: fmt.Errorf("-o %q: want text or json", output)}
			}
			api, current, err := reach.NewClusterClient(kubeconfig)
			if err != nil {
				return err
			}
			if namespace == "" {
				namespace = current
			}
			story, err := explainObject(cmd.Context(), explain.Reader{API: api, Now: time.Now()}, args[0], namespace, args[1])
			if err != nil {
				return err
			}
			if output == "json" {
				return story.WriteJSON(cmd.OutOrStdout())
			}
			return story.WriteText(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&namespace, "namespace", "n", "", "namespace; empty: that of the current context")
	f.StringVarP(&output, "output", "o", "text", "text, or json")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; empty: $KUBECONFIG or ~/.kube/config")
	return cmd
}

func explainObject(ctx context.Context, r explain.Reader, kind, namespace, name string) (explain.Explanation, error) {
	switch kind {
	case "service", "services", "svc":
		return r.ExplainService(ctx, namespace, name)
	case "pool", "pools", "backendpool", "backendpools", "bp":
		return r.ExplainPool(ctx, namespace, name)
	case "node", "nodes", "no":
		return r.ExplainNode(ctx, name)
	}
	return explain.Explanation{}, &app.UsageError{Err: fmt.Errorf("%q: want service, pool or node", kind)}
}
