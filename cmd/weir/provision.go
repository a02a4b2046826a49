// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/cli/provisioning"
)

// provisionFlags are shared by all subcommands of weir provision.
type provisionFlags struct {
	connection cli.Flags
	output     outputFormat
	all        bool
}

func newProvision() *cobra.Command {
	flags := provisionFlags{connection: cli.NewFlags()}
	cmd := &cobra.Command{
		Use:   "provision",
		Short: "Show Provisions, cancel them, or retry them now",
		Long: `Shows Provisions and the logs of their last five attempts, and cancels or retries them, with your own rights. If no
weir-provisioner runs, a note on standard error reports it. weir provision watch exits with 1 if a Provision does not
succeed.`,
		Example: `  weir provision list --all-namespaces
  weir provision logs -n shop store-17
  weir provision cancel -n shop store-17`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &app.UsageError{Err: fmt.Errorf("%s knows no %q: run %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := cmd.PersistentFlags()
	f.SortFlags = false
	addOutputFlag(cmd, f, &flags.output, "text, or json")
	addConnectionFlags(cmd, f, flags.connection, "")
	list := flags.newCommand("list", "List Provisions", 0, func(ctx context.Context, d provisioning.Command, _ string) error { return d.ListProvisions(ctx) })
	list.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "those of all namespaces")
	var attempt int64
	logs := flags.newCommand("logs NAME", "Print the logs of the last five attempts", 1, func(ctx context.Context, d provisioning.Command, name string) error {
		return d.PrintLogs(ctx, name, attempt)
	})
	logs.Flags().Int64Var(&attempt, "attempt", 0, "of this attempt alone, by its attemptNumber")
	newAction := func(use, short, annotation string) *cobra.Command {
		return flags.newCommand(use+" NAME", short, 1, func(ctx context.Context, d provisioning.Command, name string) error {
			return d.RequestAction(ctx, name, annotation, time.Now())
		})
	}
	cmd.AddCommand(list,
		flags.newCommand("show NAME", "Show one: its attempts, steps, and policy", 1, func(ctx context.Context, d provisioning.Command, name string) error {
			return d.ShowProvision(ctx, name)
		}),
		logs,
		newAction("cancel", "Cancel further attempts; the current one continues", v1alpha1.CancelAnnotation),
		newAction("retry-now", "Begin the next attempt without waiting; after the last one, one more", v1alpha1.RetryNowAnnotation),
		newAction("reset", "Restart from the first step, and reset the count of attempts", v1alpha1.ResetAnnotation),
		flags.newCommand("watch NAME", "Print what changes until it comes to an end", 1, func(ctx context.Context, d provisioning.Command, name string) error {
			return d.WatchProvision(ctx, name)
		}))
	return cmd
}

// newCommand returns a subcommand that uses the API server.
func (f *provisionFlags) newCommand(use, short string, names int, run func(context.Context, provisioning.Command, string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != names {
				return &app.UsageError{Err: fmt.Errorf("usage: weir provision %s", cmd.Use)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			api, namespace, err := f.connection.NewClusterClient()
			if err != nil {
				return err
			}
			d := provisioning.Command{API: api, Namespace: namespace, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), JSON: f.output.isJSON()}
			if f.all {
				d.Namespace = ""
			}
			name := ""
			if names > 0 {
				name = args[0]
			}
			if err := d.WarnIfNoProvisioner(cmd.Context(), time.Now()); err != nil {
				return err
			}
			return run(cmd.Context(), d, name)
		},
	}
	if names > 0 {
		cmd.ValidArgsFunction = completeProvisions(f.connection)
	}
	return cmd
}
