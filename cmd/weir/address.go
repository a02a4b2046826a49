// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/config"
)

func newAddress() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "address",
		Short: "List, release and claim addresses that outlive their Services",
		Long: `Works on the public IPs and private addresses that weir.dev/retain-address keeps, with the identity of azure.json.

Exit codes: 0 done, 1 failed or refused, 2 a flag or a file is wrong.`,
		Example: `  # All retained addresses
  weir address list --config azure.json

  # Give up two for good
  weir address release --config azure.json kubernetes-a1b2 10.224.0.7

  # Give one of another cluster to the Service of the same name in this one
  weir address claim --config azure.json --cluster-name green blue-a1b2`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var output outputFormat
	list := newAddressCommand(&output, func(ctx context.Context, c cli.AddressCommand, args []string) error {
		if len(args) > 0 {
			return &app.UsageError{Err: errors.New("weir address list has no arguments")}
		}
		return c.List(ctx)
	})
	list.Use, list.Short, list.Example = "list", "List retained addresses", "  weir address list --config azure.json -o json"
	addOutputFlag(list, list.Flags(), &output, "text, or json")
	var deletes bool
	release := newAddressCommand(new(outputFormat), func(ctx context.Context, c cli.AddressCommand, args []string) error {
		if len(args) == 0 {
			return &app.UsageError{Err: errors.New("want names of public IPs, or private addresses: weir address list has them")}
		}
		c.DeleteLoadBalancer = deletes
		return c.Release(ctx, args)
	})
	addDeleteFlag(release, &deletes)
	release.Use, release.Short, release.Example = "release NAME...", "Give up retained addresses that are not in use", "  weir address release --config azure.json kubernetes-a1b2"
	cmd.AddCommand(list, release, newClaim())
	return cmd
}

func newClaim() *cobra.Command {
	var output outputFormat
	var key string
	var dryRun, deletes bool
	cmd := newAddressCommand(&output, func(ctx context.Context, c cli.AddressCommand, args []string) error {
		if len(args) != 1 {
			return &app.UsageError{Err: errors.New("want the name of one public IP, or one private address: weir address list with the --cluster-name of its cluster has it")}
		}
		namespace, name, found := strings.Cut(key, "/")
		if key != "" && (!found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Label(name)) > 0) {
			return &app.UsageError{Err: fmt.Errorf("--service %q: want namespace/name", key)}
		}
		c.DryRun, c.DeleteLoadBalancer = dryRun, deletes
		return c.Claim(ctx, args[0], key)
	})
	cmd.Use, cmd.Short = "claim NAME", "Give a retained address to a Service of this cluster"
	cmd.Long = `Tags a retained public IP for a Service of the cluster --cluster-name, which then gets it when it is created there.
The public IP must be released first: weir.dev/retain-address on its Service in the former cluster, then delete that
Service. A claim for another namespace requires the tag weir-allowed-namespaces. It can be repeated.

A private address moves from the load balancer of the former cluster to the one of this cluster, in two writes. Between
them, Azure may assign it to another resource. Only Services of its namespace may claim it.

Exit codes: 0 claimed, 1 failed or refused, 2 a flag or a file is wrong.`
	cmd.Example = `  # For the Service of the same namespace and name
  weir address claim --config azure.json --cluster-name green blue-a1b2

  # For another Service; only print what would be written
  weir address claim --config azure.json --cluster-name green blue-a1b2 --service shop/web --dry-run`
	cmd.Flags().StringVar(&key, "service", "", "namespace/name; empty: those of its last Service")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be claimed, and write nothing")
	addDeleteFlag(cmd, &deletes)
	addOutputFlag(cmd, cmd.Flags(), &output, "text, or json")
	return cmd
}

func addDeleteFlag(cmd *cobra.Command, deletes *bool) {
	cmd.Flags().BoolVar(deletes, "delete-load-balancer", false, "delete the load balancer of a private address if only pools and probes without rules are left on it")
}

func newAddressCommand(output *outputFormat, run func(context.Context, cli.AddressCommand, []string) error) *cobra.Command {
	var opts app.Options
	var group string
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, args []string) error {
		opts.Log = slog.New(slog.DiscardHandler)
		azure, err := app.OpenAzure(opts)
		if err != nil {
			return err
		}
		return run(cmd.Context(), cli.AddressCommand{
			Azure: azure.Client, SubscriptionID: azure.Config.NetworkSubscriptionID(), ResourceGroup: cmp.Or(group, azure.Config.ResourceGroup),
			ClusterName: opts.ClusterName, Settings: azure.Settings, Out: cmd.OutOrStdout(), JSON: output.isJSON(),
		}, args)
	}}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&opts.ConfigFile, "config", config.DefaultPath, "azure.json")
	f.StringVar(&group, "resource-group", "", "resource group of the public IPs; empty: that of azure.json")
	f.StringVar(&opts.ClusterName, "cluster-name", "kubernetes", "as the controller's")
	f.StringVar(&opts.AzureEndpoint, "azure-endpoint", "", "as the controller's: an emulator on this machine instead of Azure")
	return cmd
}
