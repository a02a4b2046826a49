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
	"weir.dev/weir/internal/skumigration"
)

// exitStopped is the exit code if a user or a new leader must act first.
const exitStopped exitCode = 4

// migrationExitCode returns the exit code of weir migrate status and run.
func migrationExitCode(v skumigration.State) error {
	switch v {
	case skumigration.StateNotNeeded, skumigration.StateDone:
		return nil
	case skumigration.StateBlocked:
		return exitLosses
	case skumigration.StateStopped, skumigration.StateNoLeader, skumigration.StateUndone:
		return exitStopped
	}
	return exitChanges
}

func newMigrateStatus() *cobra.Command {
	var command app.MigrationCommand
	var output outputFormat
	var timeout time.Duration
	var watch bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the progress of the migration to Standard load balancers, and where each address is",
		Long: `Reads the journal of the migration and Azure, and prints the progress: how many steps are
done, what the migration waits for, and where each address is now. It is read-only.

Exit codes: 0 nothing is Basic, or the migration is done, 2 it has not started, or is in
progress, 3 something prevents it, 4 a user has stopped or reverted it, or no Weir leads,
1 it could not be read.`,
		Example: `  # Until it is done
  weir migrate status --config azure.json --load-balancer-class="" --watch

  # Which addresses are not with their Service any more?
  weir migrate status --config azure.json -o json | jq -r '.addresses[] | select(.lost) | .ip'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkMigrationFlags(cmd, args, timeout); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			if !watch {
				ctx, cancel = context.WithTimeout(cmd.Context(), timeout)
			}
			defer cancel()
			return watchMigration(ctx, cmd, command, output, func(s skumigration.Status) bool {
				return !watch || s.State.IsDone() || s.State == skumigration.StateUndone
			})
		},
	}
	addMigrationFlags(cmd, &command)
	f := cmd.Flags()
	f.BoolVarP(&watch, "watch", "w", false, "print it again whenever it changes, until it is done or taken back")
	addOutputFlag(cmd, f, &output, "text or json")
	f.DurationVar(&timeout, "timeout", 2*time.Minute, "give up after so long; not with --watch")
	return cmd
}

func addMigrationFlags(cmd *cobra.Command, command *app.MigrationCommand) {
	cmd.SetFlagErrorFunc(flagError)
	cmd.Flags().SortFlags = false
	addTargetFlags(cmd, &command.PlanOptions)
	addNamespaceFlag(cmd, command)
}

func addNamespaceFlag(cmd *cobra.Command, command *app.MigrationCommand) {
	cmd.Flags().StringVarP(&command.RecordNamespace, "namespace", "n", "weir-system", "namespace in which Weir runs: it keeps its record there")
	completeFlag(cmd, "namespace", completeNamespaces(addClusterFlags(cmd, &command.PlanOptions)))
}

func checkMigrationFlags(cmd *cobra.Command, args []string, timeout time.Duration) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("%s has no arguments, got %q", cmd.CommandPath(), args[0])
	case timeout <= 0:
		return fmt.Errorf("--timeout %s: want more than 0", timeout)
	}
	return nil
}

// watchMigration prints the status until enough returns true. The exit code is that of the last status.
func watchMigration(ctx context.Context, cmd *cobra.Command, command app.MigrationCommand, output outputFormat, enough func(skumigration.Status) bool) error {
	var err error
	if command.Log, err = app.NewLog(os.Stderr, "auto", 0); err != nil {
		return err
	}
	var last *skumigration.Status
	err = command.WatchStatus(ctx, func(s skumigration.Status) (bool, error) {
		text := []byte(sanitizeText(s.Text()))
		if output.isJSON() {
			if text, err = s.JSON(); err != nil {
				return true, err
			}
		} else if last != nil {
			text = append([]byte("\n"), text...)
		}
		last = &s
		_, err := cmd.OutOrStdout().Write(text)
		return enough(s), err
	})
	if usage, ok := errors.AsType[*app.UsageError](err); ok {
		return errors.Unwrap(usage) // exit code 2 would mean that the migration is in progress
	}
	if err != nil && (last == nil || ctx.Err() == nil) {
		return err
	}
	return migrationExitCode(last.State)
}
