// SPDX-License-Identifier: Apache-2.0

// Command weir keeps Azure Load Balancers in sync with a Kubernetes cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/app/process"
)

func main() { os.Exit(run(os.Args[1:])) }

// run returns the exit code: 0 on success, 2 for errors in flags or files, 1 for all other errors.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	usePluginName(root, os.Args[0])
	root.SetArgs(args)
	err := checkSubcommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	fmt.Fprintf(os.Stderr, "weir: %s\n", sanitizeText(err.Error()))
	if _, ok := errors.AsType[*app.UsageError](err); ok {
		return 2
	}
	return 1
}

// sanitizeText replaces control characters of files and objects, which could steer the terminal.
func sanitizeText(text string) string { return process.SanitizeText(text) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Keeps Azure Load Balancers in sync with a Kubernetes cluster",
		Long: `Weir keeps the backend pools of Azure Load Balancers in sync with the endpoints of a
Kubernetes cluster. No endpoint change is lost, and kubectl get backendpools shows
why a pool is out of sync.

Exit codes: 0 done, 1 failed, 2 a flag or a file is wrong. weir plan, weir migrate plan,
run and status, weir status and weir doctor document theirs in their help.`,
		Version:       app.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return &app.UsageError{Err: fmt.Errorf("there is no command %q: did you mean weir %s?", args[0], strings.Join(near, " or weir "))}
			}
			return &app.UsageError{Err: fmt.Errorf("there is no command %q: run weir --help", args[0])}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &app.UsageError{Err: flagError(cmd, err)}
	})
	root.AddCommand(newController(), newPlan(), newMigrate(), newLeave(), newStatus(), newExplain(), newPage(), newRetry(), newPause(), newResume(), newDoctor(), newAddress(), newCalls(), newBudget(), newProvision(), newBackoffTable(), newVersion())
	useHelpTemplate(root)
	return root
}

func rejectArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &app.UsageError{Err: fmt.Errorf("%s has no arguments, got %q", cmd.CommandPath(), args[0])}
	}
	return nil
}
