// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/config"
)

// exitCode ends the program without a message.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// Exit codes of a plan: it has changes, it loses addresses, a Service is rejected (with --fail-on-refused).
const (
	exitChanges  exitCode = 2
	exitLosses   exitCode = 3
	exitRejected exitCode = 4
)

func newPlan() *cobra.Command {
	var opts app.PlanOptions
	connection := cli.NewFlags()
	var output outputFormat
	var failOnRefused bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "plan [SERVICE|gateway/NAME]",
		Short: "Show what the controller would change in Azure",
		Long: `Reads the cluster and Azure, and prints what the controller would change in Azure if
it started now. It writes nothing, neither to Azure nor to the cluster. With -f the
objects come from files instead of a cluster.

Exit codes: 0 nothing would change, 2 something would, 3 addresses would be lost that
cannot be had again, 4 a Service is refused, with --fail-on-refused, 1 the plan could
not be made, or is not complete.`,
		Example: `  # What would Weir change if it took over the Services of this cluster?
  weir plan --config azure.json --load-balancer-class=""

  # One Service, one Gateway:
  weir plan --config azure.json -n shop web
  weir plan --config azure.json -n shop gateway/edge

  # A review in CI, without a cluster; a folder's files by way of standard input:
  cat manifests/*.yaml | weir plan --config azure.json --fail-on-refused -f -

  # For machines:
  weir plan --config azure.json -o json | jq '.resources[] | {kind, name, action}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Stdin, opts.LoadConfig, opts.Namespace = cmd.InOrStdin(), connection.REST, *connection.Namespace
			switch {
			case len(args) > 1:
				return fmt.Errorf("weir plan has one Service or gateway/NAME as argument, got %q", args)
			case len(args) == 1:
				opts.Service = args[0]
			}
			if timeout <= 0 {
				return fmt.Errorf("--timeout %s: want more than 0", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			err := printPlan(ctx, cmd, opts, output, failOnRefused)
			if _, ok := errors.AsType[exitCode](err); err != nil && !ok && ctx.Err() != nil && cmd.Context().Err() == nil {
				return fmt.Errorf("no plan within %s, because the API server or Azure did not respond: %w; --timeout 10m waits longer", timeout, err)
			}
			return err
		},
	}
	cmd.SetFlagErrorFunc(flagError)
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&opts.ConfigFile, "config", config.DefaultPath, "azure.json: which Azure, and what in it")
	f.StringArrayVarP(&opts.Files, "file", "f", nil, "file with Nodes, Services, EndpointSlices, BackendPools, Namespaces and objects of Gateway API, in place of a cluster; - is standard input; may be repeated")
	f.BoolVar(&opts.ServerDryRun, "server-dry-run", false, "with -f: have the API server check the objects of the files, too; it keeps none of them")
	f.BoolVar(&failOnRefused, "fail-on-refused", false, "exit with code 4 if a Service is refused")
	addOutputFlag(cmd, f, &output, "text or json")
	f.DurationVar(&timeout, "timeout", 2*time.Minute, "give up after so long")
	f.StringVar(&opts.ClusterName, "cluster-name", "kubernetes", "name of the cluster in Azure")
	f.StringVar(&opts.LoadBalancerClass, "load-balancer-class", app.LoadBalancerClass, "spec.loadBalancerClass of the Services that get a load balancer; empty: those without a class")
	f.StringVar(&opts.AzureBehaviour, "azure-behaviour", "", "report of weirlab probe-azure: what Azure does, in place of what is assumed of it; as for weir controller")
	f.StringVar(&opts.AzureEndpoint, "azure-endpoint", "", "an emulator on this machine instead of Azure, e.g. http://127.0.0.1:9443; only loopback is accepted")
	addConnectionFlags(cmd, f, connection, "plan the Services of this namespace alone; where a Service is named, empty is default")
	cmd.ValidArgsFunction = completeServiceArg(connection)
	return cmd
}

// printPlan prints a plan, including an incomplete one before its error.
func printPlan(ctx context.Context, cmd *cobra.Command, opts app.PlanOptions, output outputFormat, failOnRefused bool) error {
	var err error
	if opts.Log, err = app.NewLog(os.Stderr, "auto", 0); err != nil {
		return err
	}
	p, failed := app.Plan(ctx, opts)
	if usage, ok := errors.AsType[*app.UsageError](failed); ok {
		return errors.Unwrap(usage) // exit code 2 would mean that there are changes
	}
	if failed != nil && p.Resources == nil {
		return failed
	}
	text := []byte(p.FormatText(supportsColor()))
	if output.isJSON() {
		if text, err = p.FormatJSON(); err != nil {
			return err
		}
	}
	if _, err := cmd.OutOrStdout().Write(text); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return failed
	case len(p.Losses) > 0:
		return exitLosses
	case failOnRefused && p.CountRejected() > 0:
		return exitRejected
	case p.Changes > 0:
		return exitChanges
	}
	return nil
}

// supportsColor reports whether standard output is a terminal with color support.
func supportsColor() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stdout.Fd())) //nolint:gosec // a descriptor fits
}

// terminalWidth returns the columns of standard output, or 0 if it is no terminal.
func terminalWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd())) //nolint:gosec // a descriptor fits
	if err != nil {
		return 0
	}
	return width
}
