// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/lab/demo"
)

func newRemoteCommand() *cobra.Command {
	var opts demo.RemoteOptions
	cmd := &cobra.Command{
		Use:   "remote",
		Short: "Watch Weir provision a remote cluster over a bad network",
		Long: `Starts two real kube-apiservers with their controllers (kubelab), and
weir-provisioner beside the first. The second one is reached over a network that is away at first, then
slow, and resets connections. Two Provisions have it be their target: one is
retried, and the other is not.

It prints what becomes of them, and how to look around and to change the
network, until Ctrl-C ends all.

It needs kubelab and weir-provisioner beside weirlab: make remote builds all three.

Exit codes: 0 Ctrl-C, 1 something has failed, 2 a flag is wrong, 141 nobody reads
the output.`,
		Example: `  weirlab remote
  weirlab remote --away 5m
  weirlab remote --bytes-per-second 1000 --reset-percent 60`,
		Args:         rejectArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.Validate(); err != nil {
				return usageError{err}
			}
			opts.Out = cmd.OutOrStdout()
			ctx, stop := withSignals(cmd.Context())
			defer stop()
			return demo.Remote(ctx, opts)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&opts.Away, "away", 30*time.Second, "how long the network is away at first, up to an hour")
	flags.IntVar(&opts.Network.BytesPerSecond, "bytes-per-second", 5000, "what the network carries in each direction")
	flags.IntVar(&opts.Network.ResetPercent, "reset-percent", 30, "how many of a hundred connections are reset within their first 8 KiB")
	return cmd
}

// withSignals returns a context that Ctrl-C cancels. A second Ctrl-C ends the process and its children.
func withSignals(ctx context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Catch SIGPIPE, so that a closed pipe is a write error and cleanup runs.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	context.AfterFunc(ctx, stop)
	return ctx, func() { stop(); signal.Stop(pipe) }
}
