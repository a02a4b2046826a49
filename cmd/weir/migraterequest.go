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
	"weir.dev/weir/internal/skumigration"
)

func newMigrateStop() *cobra.Command {
	var command app.MigrationCommand
	var reason string
	var undo bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the migration to Standard load balancers before its next step",
		Long: `Requests that the leader stops before its next step. Requests to Azure that are in progress finish first. Weir
writes nothing else until weir migrate resume, because a half-migrated load balancer must not be filled. A stop
that exists when Weir starts prevents the migration. It is a key of the ConfigMap weir-controller.

With --undo the leader reverts the migration: machines rejoin the Basic load balancers that they have left.
Addresses are unchanged, because no load balancer has been deleted yet. Public IPs that became Static remain
Static, which has no effect on clients. Weir then resumes normal operation, and only weir migrate run starts the
migration again. Once the first load balancer is about to be deleted, the migration cannot be reverted: the
command requests nothing and reports why.

Exit codes: 0 requested, 1 the request failed or cannot be granted, 2 a flag is wrong.`,
		Example: `  # Wait until I say so
  weir migrate stop --why "the shop is open"

  # Have machines be where they were, and see when they are
  weir migrate stop --undo && weir migrate status --config azure.json --load-balancer-class="" --watch`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if undo {
				effective, err := command.RequestRollback(cmd.Context(), reason)
				if err != nil {
					return err
				}
				return printLine(cmd, "Undo requested %s\nweir migrate status reports when it is done. weir migrate resume continues the migration instead.", effective)
			}
			effective, err := command.RequestStop(cmd.Context(), reason)
			if err != nil {
				return err
			}
			return printLine(cmd, "Stop requested %s\nweir migrate status reports when the leader has stopped. weir migrate resume cancels the stop.", effective)
		},
	}
	addRequestFlags(cmd, &command)
	cmd.Flags().BoolVar(&undo, "undo", false, "take back what was done, as long as no load balancer was deleted")
	cmd.Flags().StringVar(&reason, "why", "", "the reason that other users see, in one line")
	return cmd
}

func newMigrateResume() *cobra.Command {
	var command app.MigrationCommand
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Have a migration go on that was stopped",
		Long: `Cancels a stop. The leader continues within seconds from the state of Azure.

Exit codes: 0 there is no stop, 1 it could not be canceled, 2 a flag is wrong.`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			canceled, err := command.CancelStop(cmd.Context())
			switch {
			case err != nil:
				return err
			case canceled == nil:
				return printLine(cmd, "No stop was requested.")
			}
			return printLine(cmd, "Canceled the stop that was requested %s", *canceled)
		},
	}
	addRequestFlags(cmd, &command)
	return cmd
}

func newMigrateGiveUp() *cobra.Command {
	var command app.MigrationCommand
	var reason string
	cmd := &cobra.Command{
		Use:   "give-up ADDRESS",
		Short: "Let a Service have another address than the one that Azure refuses since the migration",
		Long: `Releases a private address that a finished migration owes to a Service because another system has it or no
subnet of the cluster contains it. The Service waits for that address and gets no other one. After this command
it gets another address within five minutes. DNS zones and firewalls may still name the old address: weir migrate
status shows what holds it.

Exit codes: 0 released, 1 Azure does not reject this address, 2 an argument is wrong.`,
		Example: `  weir migrate give-up 10.0.0.9 --why "the printer has it now"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &app.UsageError{Err: errors.New("one ADDRESS is needed: weir migrate status lists those that Azure refuses")}
			}
			ip, err := netip.ParseAddr(args[0])
			if err != nil {
				return &app.UsageError{Err: fmt.Errorf("ADDRESS: %w", err)}
			}
			if err := command.ReplaceAddress(cmd.Context(), ip, reason); err != nil {
				return err
			}
			return printLine(cmd, "%s is given up: its Service gets another address within five minutes.", ip)
		},
	}
	addRequestFlags(cmd, &command)
	cmd.Flags().StringVar(&reason, "why", "", "the reason that other users see, in one line")
	return cmd
}

func addRequestFlags(cmd *cobra.Command, command *app.MigrationCommand) {
	cmd.Flags().SortFlags = false
	addNamespaceFlag(cmd, command)
}

func printLine(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), sanitizeText(fmt.Sprintf(format, args...)))
	return err
}

func newMigrateRun() *cobra.Command {
	var command app.MigrationCommand
	var output outputFormat
	var timeout time.Duration
	var wait bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: `Have the leader migrate now, where "loadBalancerMigration" is "manual"`,
		Long: `Requests the migration. The leader releases its leadership, and the next leader migrates before it writes
anything else. With --wait it prints the progress, as weir migrate status --watch does. The command first reports
what prevents the migration. It needs "loadBalancerSku": "standard" in azure.json.

Exit codes: 0 nothing is Basic, or the migration is done, 2 requested or in progress, 3 something prevents it,
4 a user has stopped it, or no Weir leads, 1 the request failed.`,
		Example: `  weir migrate run --config azure.json --load-balancer-class="" --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkMigrationFlags(cmd, args, timeout); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return runMigration(ctx, cmd, command, output, wait)
		},
	}
	addMigrationFlags(cmd, &command)
	f := cmd.Flags()
	f.BoolVarP(&wait, "wait", "w", false, "print the progress until it is done, stopped or rejected")
	addOutputFlag(cmd, f, &output, "text or json")
	f.DurationVar(&timeout, "timeout", time.Hour, "how long to wait; the migration continues afterwards")
	return cmd
}

func runMigration(ctx context.Context, cmd *cobra.Command, command app.MigrationCommand, output outputFormat, wait bool) error {
	mustRequest := false
	err := watchMigration(ctx, cmd, command, output, func(s skumigration.Status) bool {
		mustRequest = (s.State == skumigration.StateNotStarted || s.State == skumigration.StateUndone) && s.Requests.Run == nil
		return true
	})
	if mustRequest {
		if err := command.RequestStart(ctx); err != nil {
			return err
		}
		err = exitChanges
	}
	code, under := errors.AsType[exitCode](err)
	if !under || code != exitChanges || !wait {
		return err
	}
	return watchMigration(ctx, cmd, command, output, func(s skumigration.Status) bool {
		started := s.State == skumigration.StateNotStarted && s.Requests.Run == nil
		return started || s.State == skumigration.StateUndone || s.State.IsDone() || s.State == skumigration.StateStopped || s.State == skumigration.StateBlocked && s.Requests.Run == nil
	})
}
