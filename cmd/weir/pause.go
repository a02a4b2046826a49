// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
)

// pauseFlags are the flags shared by weir pause and weir resume.
type pauseFlags struct {
	connection                 cli.Flags
	output                     outputFormat
	all, allNamespaces, dryRun bool
}

func (f *pauseFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.all, "all", false, "all BackendPools of the namespace")
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "with --all: of all namespaces")
	flags.BoolVar(&f.dryRun, "dry-run", false, "list the pools and send a server-side dry run; nothing is changed")
	addOutputFlag(cmd, flags, &f.output, "text, or json")
	addConnectionFlags(cmd, flags, f.connection, "")
	cmd.ValidArgsFunction = completePools(f.connection)
}

func (f *pauseFlags) newCommand(cmd *cobra.Command, names []string) (cli.PauseCommand, error) {
	switch {
	case f.all == (len(names) > 0):
		return cli.PauseCommand{}, &app.UsageError{Err: errors.New("want names of BackendPools, or service/NAME, or --all")}
	case f.allNamespaces && (f.connection.HasNamespace() || !f.all):
		return cli.PauseCommand{}, &app.UsageError{Err: errors.New("-A requires --all, and excludes -n")}
	}
	api, namespace, err := f.connection.NewClusterClient()
	if err != nil {
		return cli.PauseCommand{}, err
	}
	d := cli.PauseCommand{API: api, Namespace: namespace, Names: names, Out: cmd.OutOrStdout(), JSON: f.output.isJSON(), DryRun: f.dryRun}
	if f.allNamespaces {
		d.Namespace = ""
	}
	return d, nil
}

func newPause() *cobra.Command {
	f := pauseFlags{connection: cli.NewFlags()}
	var length time.Duration
	var reason string
	cmd := &cobra.Command{
		Use:   "pause [POOL|service/NAME]...",
		Short: "Pause updates of BackendPools",
		Long: `Pauses updates of pools in Azure: no member joins or leaves, and no admin state changes. A write in progress is
not canceled. Frontends, rules and probes of a Service are not paused; use weir.dev/dry-run for them. Changes are
written when the pause ends: after --for, or with weir resume. It patches spec.paused and spec.pause with your own
rights. weir status lists what is paused, until when, why, and by which user according to the BackendPool.

Exit codes: 0 paused, 1 a pool does not exist or could not be paused, 2 a flag is wrong.`,
		Example: `  # The pools of a Service, during manual work in Azure
  weir pause -n shop service/web --for 2h --why "moving the probe, ticket 4711"

  # Everything, at once
  weir pause -A --all --why "Azure incident"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("for") && length < time.Second:
				return &app.UsageError{Err: fmt.Errorf("--for %s: want a second or more; without it the pause has no end", length)}
			case !utf8.ValidString(reason) || utf8.RuneCountInString(reason) > cli.MaxReasonLength:
				return &app.UsageError{Err: fmt.Errorf("--why: want %d characters of UTF-8 at most", cli.MaxReasonLength)}
			}
			d, err := f.newCommand(cmd, args)
			if err != nil {
				return err
			}
			return d.PausePools(cmd.Context(), length, reason, time.Now())
		},
	}
	cmd.Flags().DurationVar(&length, "for", 0, "how long, such as 30m or 2h; absent: until weir resume")
	cmd.Flags().StringVar(&reason, "why", "", "the reason that other users see, 256 characters at most")
	f.addFlags(cmd)
	return cmd
}

func newResume() *cobra.Command {
	f := pauseFlags{connection: cli.NewFlags()}
	cmd := &cobra.Command{
		Use:   "resume [POOL|service/NAME]...",
		Short: "Resume updates of paused BackendPools",
		Long: `Ends a pause: the pools are synced at once with the current state of the cluster. It takes spec.paused and
spec.pause away, with your own rights: to list and patch BackendPools.

Exit codes: 0 they go on, 1 one of them is not there or could not be resumed, 2 a flag has to be corrected.`,
		Example: `  weir resume -n shop service/web

  # All that are paused, in all namespaces
  weir resume -A --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := f.newCommand(cmd, args)
			if err != nil {
				return err
			}
			return d.ResumePools(cmd.Context())
		},
	}
	f.addFlags(cmd)
	return cmd
}
