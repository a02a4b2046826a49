// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/migration"
)

func newMigrateStop() *cobra.Command {
	var command app.MigrationCommand
	var why string
	var undo bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the migration to Standard load balancers before its next step",
		Long: `Asks the leader to stop before its next step; requests under way come to their end first. Weir writes
nothing else until weir migrate resume, for what is taken apart nobody else may fill. A stop that is
there when Weir starts keeps it from beginning. It is a key of the ConfigMap weir-controller.

With --undo the leader takes back what was done: machines join the Basic load balancers again that
they have left. Addresses are where they were, for no load balancer has gone yet; public IPs that
were made Static stay so, which changes nothing for anybody. Then Weir works on, and the
migration begins again with weir migrate run alone. Once the first load balancer is about to be
deleted there is no way back: nothing is asked then, and it is said what holds instead.

Exit codes: 0 it is asked for, 1 it could not be, or there is no way back, 2 a flag has to be corrected.`,
		Example: `  # Wait until I say so
  weir migrate stop --why "the shop is open"

  # Have machines be where they were, and see when they are
  weir migrate stop --undo && weir migrate status --config azure.json --load-balancer-class="" --watch`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if undo {
				effective, err := command.Undo(cmd.Context(), why)
				if err != nil {
					return err
				}
				return say(cmd, "All that was done is taken back, asked for %s\nweir migrate status says when that is done, and weir migrate resume has the migration go on instead.", effective)
			}
			effective, err := command.Stop(cmd.Context(), why)
			if err != nil {
				return err
			}
			return say(cmd, "A stop is asked for %s\nweir migrate status says when it is heard, and weir migrate resume takes it back.", effective)
		},
	}
	askFlags(cmd, &command)
	cmd.Flags().BoolVar(&undo, "undo", false, "take back what was done, as long as no load balancer was deleted")
	cmd.Flags().StringVar(&why, "why", "", "what others are told, in one line")
	return cmd
}

func newMigrateResume() *cobra.Command {
	var command app.MigrationCommand
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Have a migration go on that was stopped",
		Long: `Takes a stop back. The leader goes on within seconds, from where Azure is.

Exit codes: 0 there is no stop any more, 1 it could not be taken back, 2 a flag has to be corrected.`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			was, err := command.Resume(cmd.Context())
			switch {
			case err != nil:
				return err
			case was == nil:
				return say(cmd, "Nobody has asked for a stop.")
			}
			return say(cmd, "The stop is taken back that was asked for %s", *was)
		},
	}
	askFlags(cmd, &command)
	return cmd
}

func newMigrateGiveUp() *cobra.Command {
	var command app.MigrationCommand
	var why string
	cmd := &cobra.Command{
		Use:   "give-up ADDRESS",
		Short: "Let a Service have another address than the one that Azure refuses since the migration",
		Long: `A migration that has ended without a private address owes it to its Service: another system has it, or
no subnet of the cluster. The Service asks for it and gets no other address. This agrees to another one, which
the Service gets within five minutes. The address may be in DNS zones and firewalls: weir migrate status names
what holds it.

Exit codes: 0 it is given up, 1 it is not one that Azure refuses, 2 an argument has to be corrected.`,
		Example: `  weir migrate give-up 10.0.0.9 --why "the printer has it now"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &app.UsageError{Err: errors.New("one ADDRESS is needed: weir migrate status lists those that Azure refuses")}
			}
			ip, err := netip.ParseAddr(args[0])
			if err != nil {
				return &app.UsageError{Err: fmt.Errorf("ADDRESS: %w", err)}
			}
			if err := command.GiveUp(cmd.Context(), ip, why); err != nil {
				return err
			}
			return say(cmd, "%s is given up: its Service gets another address within five minutes.", ip)
		},
	}
	askFlags(cmd, &command)
	cmd.Flags().StringVar(&why, "why", "", "what others are told, in one line")
	return cmd
}

func askFlags(cmd *cobra.Command, command *app.MigrationCommand) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&command.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the pod's service account, else $KUBECONFIG or ~/.kube/config")
	recordFlag(cmd, command)
}

func say(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), printable(fmt.Sprintf(format, args...)))
	return err
}

func newMigrateRun() *cobra.Command {
	var command app.MigrationCommand
	var output string
	var patience time.Duration
	var wait bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: `Have the leader migrate now, where "loadBalancerMigration" is "manual"`,
		Long: `Asks the leader to migrate: it gives up its lead, and the next one begins with it before anything else is
written. With --wait it prints how that stands, as weir migrate status --watch does. What keeps it from
starting is said before anything is asked. It needs "loadBalancerSku": "standard" in azure.json.

Exit codes: 0 nothing is Basic, or it is done, 2 it is asked for, or under way, 3 something keeps it from
starting, 4 somebody has stopped it, or no Weir leads, 1 it could not be asked for.`,
		Example: `  weir migrate run --config azure.json --load-balancer-class="" --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkMigrationFlags(cmd, args, output, patience); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			return runMigration(ctx, cmd, command, output, wait)
		},
	}
	migrationFlags(cmd, &command)
	f := cmd.Flags()
	f.BoolVarP(&wait, "wait", "w", false, "print how it stands until it is done, stopped or refused")
	f.StringVarP(&output, "output", "o", "text", "text or json")
	f.DurationVar(&patience, "timeout", time.Hour, "wait no longer; the migration goes on")
	return cmd
}

func runMigration(ctx context.Context, cmd *cobra.Command, command app.MigrationCommand, output string, wait bool) error {
	mustRequest := false
	err := watchMigration(ctx, cmd, command, output, func(s migration.Status) bool {
		mustRequest = (s.Verdict == migration.NotBegun || s.Verdict == migration.TakenBack) && s.Asked.Run == nil
		return true
	})
	if mustRequest {
		if err := command.Begin(ctx); err != nil {
			return err
		}
		err = differs
	}
	code, under := errors.AsType[exitCode](err)
	if !under || code != differs || !wait {
		return err
	}
	return watchMigration(ctx, cmd, command, output, func(s migration.Status) bool {
		started := s.Verdict == migration.NotBegun && s.Asked.Run == nil
		return started || s.Verdict == migration.TakenBack || s.Verdict.Over() || s.Verdict == migration.Halted || s.Verdict == migration.Refused && s.Asked.Run == nil
	})
}
