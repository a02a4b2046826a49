// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/skumigration"
)

func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate Basic load balancers to Standard",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &app.UsageError{Err: fmt.Errorf("there is no command weir migrate %q: run weir migrate --help", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMigratePlan(), newMigrateStatus(), newMigrateRun(), newMigrateStop(), newMigrateResume(), newMigrateGiveUp())
	return cmd
}

func newMigratePlan() *cobra.Command {
	var opts app.PlanOptions
	var output outputFormat
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show how Basic load balancers would become Standard ones",
		Long: `Reads the cluster and Azure, and prints which addresses are kept, what is written step by
step, for about how long Services are not reached, and what keeps it from starting. It
writes nothing. The controller does it when it starts with "loadBalancerSku": "standard"
in azure.json. Once begun, the plan is what is left.

Exit codes: 0 nothing is Basic, 2 it would begin, or go on, 3 something keeps it from
starting, 1 the plan could not be made.`,
		Example: `  # What would happen with the next start?
  weir migrate plan --config azure.json --load-balancer-class=""

  # Which public IPs and private addresses are kept?
  weir migrate plan --config azure.json -o json | jq -r '.loadBalancers[].addresses[].ip'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return fmt.Errorf("weir migrate plan has no arguments, got %q", args[0])
			case timeout <= 0:
				return fmt.Errorf("--timeout %s: want more than 0", timeout)
			}
			opts.Stdin = cmd.InOrStdin()
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return printMigration(ctx, cmd, opts, output)
		},
	}
	cmd.SetFlagErrorFunc(flagError)
	f := cmd.Flags()
	f.SortFlags = false
	addTargetFlags(cmd, &opts)
	addClusterFlags(cmd, &opts)
	f.StringArrayVarP(&opts.Files, "file", "f", nil, "file with Services, in place of a cluster; - is standard input; may be repeated")
	addOutputFlag(cmd, f, &output, "text or json")
	f.DurationVar(&timeout, "timeout", 2*time.Minute, "give up after so long")
	return cmd
}

// addTargetFlags adds the flags that select the cluster and its Azure configuration.
func addTargetFlags(cmd *cobra.Command, opts *app.PlanOptions) {
	f := cmd.Flags()
	f.StringVar(&opts.ConfigFile, "config", config.DefaultPath, "azure.json: which Azure, and what in it")
	f.StringVar(&opts.ClusterName, "cluster-name", "kubernetes", "name of the cluster in Azure")
	f.StringVar(&opts.LoadBalancerClass, "load-balancer-class", app.LoadBalancerClass, "spec.loadBalancerClass of the Services that get a load balancer; empty: those without a class")
	f.StringVar(&opts.AzureEndpoint, "azure-endpoint", "", "an emulator on this machine instead of Azure, e.g. http://127.0.0.1:9443; only loopback is accepted")
}

// addClusterFlags adds the connection flags without -n, which weir migrate has for Weir's namespace.
func addClusterFlags(cmd *cobra.Command, opts *app.PlanOptions) cli.Flags {
	connection := cli.NewFlags()
	connection.Namespace = nil
	opts.LoadConfig = connection.REST
	addConnectionFlags(cmd, cmd.Flags(), connection, "")
	return connection
}

func printMigration(ctx context.Context, cmd *cobra.Command, opts app.PlanOptions, output outputFormat) error {
	var err error
	if opts.Log, err = app.NewLog(os.Stderr, "auto", 0); err != nil {
		return err
	}
	p, err := app.PlanMigration(ctx, opts)
	if usage, ok := errors.AsType[*app.UsageError](err); ok {
		return errors.Unwrap(usage) // exit code 2 would mean that there are changes
	}
	if err != nil {
		return err
	}
	text := []byte(sanitizeText(p.Text()))
	if output.isJSON() {
		if text, err = p.JSON(); err != nil {
			return err
		}
	}
	if _, err := cmd.OutOrStdout().Write(text); err != nil {
		return err
	}
	switch p.State {
	case skumigration.PlanEmpty:
		return nil
	case skumigration.PlanBlocked:
		return exitLosses
	}
	return exitChanges
}
