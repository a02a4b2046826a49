// SPDX-License-Identifier: Apache-2.0

// Command weirlab contains tools that need no Azure, and the probe of a real one.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:])) }

// run returns the exit code: 0 on success, 2 for usage errors, 1 for all other errors.
func run(args []string) int {
	root := newRootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "weirlab:", err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return coded.ExitCode()
	}
	return 1
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "weirlab",
		Short: "Try Weir without Azure, and check what it assumes of Azure",
		Long: `A demo, an emulated Azure Resource Manager, and what is built on it. Only probe-azure
calls a real Azure.

Exit codes: 0 done, 1 failed, 2 a flag, argument or input file is wrong.`,
		Example:       "  weirlab demo\n  weirlab remote\n  weirlab emulator --latency-scale 0.1\n  weirlab simulate --for 1m",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: see weirlab --help", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newDemoCommand(), newEmulatorCommand(), newSimulateCommand(), newScaleCommand(), newRemoteCommand(), newProbeCommand(), newProfiledCommand())
	return root
}

func rejectArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usageError{err}
	}
	return nil
}
