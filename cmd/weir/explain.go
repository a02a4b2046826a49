// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/cli/explain"
)

func newExplain() *cobra.Command {
	connection := cli.NewFlags()
	var output outputFormat
	var health healthFlags
	cmd := &cobra.Command{
		Use:   "explain (service|gateway|pool|node) NAME",
		Short: "Explain a Service, a Gateway, a BackendPool or a node: its path through Azure, what is missing, what happened",
		Long: `Shows the path of a Service or Gateway from its class, addresses and rules to its nodes, the members of a BackendPool,
or the pools of a node: what is missing, what happened, what happens next, and how to fix it. It reads from the API
server with your own rights.

With --health it also shows what Azure's health probe reports of each node, and why. The leader reads that from Azure, which
counts it as a write and can take ten seconds. Weir's identity needs the role config/azure-role-health.json for it,
and you the rights of weir calls.`,
		Example: `  weir explain service web -n shop
  weir explain service web -n shop --health
  weir explain gateway edge -n shop
  weir explain pool web.kubernetes -n shop
  weir explain node aks-nodepool1-12345678-vmss000000`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return &app.UsageError{Err: fmt.Errorf("usage: weir %s", cmd.Use)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			api, namespace, err := connection.NewClusterClient()
			if err != nil {
				return err
			}
			reader := explain.Reader{API: api, Now: time.Now()}
			if health.enabled {
				leader, err := connection.NewConnection(health.url, health.weirNamespace)
				if err != nil {
					return err
				}
				reader.Health = cli.NewHealthReader(leader)
			}
			story, err := explainObject(cmd.Context(), reader, args[0], namespace, args[1])
			if err != nil {
				return err
			}
			if output.isJSON() {
				return story.WriteJSON(cmd.OutOrStdout())
			}
			if supportsColor() {
				return story.WriteColored(cmd.OutOrStdout())
			}
			return story.WriteText(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	health.addTo(f, "read from Azure what its health probes report of each node")
	addOutputFlag(cmd, f, &output, "text, or json")
	addConnectionFlags(cmd, f, connection, "")
	cmd.ValidArgsFunction = completeExplained(connection)
	return cmd
}

// Kinds of objects that weir explain explains.
const (
	kindService = "service"
	kindGateway = "gateway"
	kindPool    = "pool"
	kindNode    = "node"
)

// explainedKind returns the kind of a name or abbreviation, or "".
func explainedKind(name string) string {
	switch name {
	case "service", "services", "svc":
		return kindService
	case "gateway", "gateways", "gtw":
		return kindGateway
	case "pool", "pools", "backendpool", "backendpools", "bp":
		return kindPool
	case "node", "nodes", "no":
		return kindNode
	}
	return ""
}

func explainObject(ctx context.Context, r explain.Reader, kind, namespace, name string) (explain.Explanation, error) {
	switch explainedKind(kind) {
	case kindService:
		return r.ExplainService(ctx, namespace, name)
	case kindGateway:
		return r.ExplainGateway(ctx, namespace, name)
	case kindPool:
		return r.ExplainPool(ctx, namespace, name)
	case kindNode:
		return r.ExplainNode(ctx, name)
	}
	return explain.Explanation{}, &app.UsageError{Err: fmt.Errorf("%q: want service, gateway, pool or node", kind)}
}
