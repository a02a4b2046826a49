// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

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
			if len(splitKind(args)) != 2 {
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
			object := splitKind(args)
			explanation, err := explainObject(cmd.Context(), reader, object[0], namespace, object[1])
			if err != nil {
				return describeMissing(err, object[0], namespace, object[1])
			}
			if output.isJSON() {
				return explanation.WriteJSON(cmd.OutOrStdout())
			}
			if supportsColor() {
				return explanation.WriteColored(cmd.OutOrStdout())
			}
			return explanation.WriteText(cmd.OutOrStdout())
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

// splitKind splits one argument KIND/NAME, as kubectl takes it.
func splitKind(args []string) []string {
	if len(args) == 1 {
		if kind, name, ok := strings.Cut(args[0], "/"); ok {
			return []string{kind, name}
		}
	}
	return args
}

// describeMissing adds the next command to the error of an object that does not exist.
func describeMissing(err error, kind, namespace, name string) error {
	switch kind := explainedKind(kind); {
	case kind == kindGateway && meta.IsNoMatchError(err):
		return errors.New("the API server does not serve Gateways: the CRDs of Gateway API are not installed")
	case !apierrors.IsNotFound(err):
	case kind == kindService:
		return fmt.Errorf("there is no Service %q in namespace %s: kubectl get services -n %[2]s lists them", name, namespace)
	case kind == kindGateway:
		return fmt.Errorf("there is no Gateway %q in namespace %s: kubectl get gateways -n %[2]s lists them", name, namespace)
	case kind == kindPool:
		return fmt.Errorf("there is no BackendPool %q in namespace %s: kubectl get backendpools -A lists them; weir explain service NAME -n %[2]s shows those of a Service", name, namespace)
	case kind == kindNode:
		return fmt.Errorf("there is no node %q: kubectl get nodes lists them", name)
	}
	return err
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
