// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/lab/scale"
)

func newScaleCommand() *cobra.Command {
	var opts scale.Options
	var output string
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure what Weir costs in a large cluster",
		Long: `Starts a real kube-apiserver (kubelab), an emulated Azure Resource Manager that takes
no time, and the controller as a process. Fills the cluster with Services, ten endpoints and
a BackendPool each, and measures a first start, a restart, an idle time, events that change
no member of a pool and events that do, and ten nodes that are excluded. At the end what
Azure shows is compared with the endpoints.

It needs kubelab and weir beside weirlab: make kubelab build. 1,000 Services take two
minutes and a GiB on two cores; 10,000 take ten minutes and 4 GiB.

Exit codes: 0 measured, 1 failed, or too late, 2 a flag is wrong.`,
		Example: `  weirlab scale
  weirlab scale --services 10000 --nodes 1000 -o json >figures.json
  weirlab scale --profiles /tmp && go tool pprof -top /tmp/restart.cpu.pprof`,
		Args:         rejectArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return usageError{fmt.Errorf("--output %q: use text or json", output)}
			}
			if err := opts.Validate(); err != nil {
				return usageError{err}
			}
			opts.JSON, opts.Out, opts.Err = output == "json", cmd.OutOrStdout(), cmd.ErrOrStderr()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return scale.Run(ctx, opts)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&opts.Services, "services", 1000, "number of Services with a BackendPool, up to 10000")
	flags.IntVar(&opts.Nodes, "nodes", 1000, "number of nodes, 20 to 5000")
	flags.IntVar(&opts.LoadBalancers, "load-balancers", 50, "number of load balancers that share the pools")
	flags.DurationVar(&opts.Idle, "idle", time.Minute, "how long nothing happens in the idle phase")
	flags.BoolVar(&opts.Flood, "flood", false, "at the end, for 15 s, 60 connections to each of health and metrics with a request of 1 MiB of headers that never ends")
	flags.DurationVar(&opts.Timeout, "within", 30*time.Minute, "how long all may take")
	flags.StringVar(&opts.Profiles, "profiles", "", "folder for a CPU profile and an allocation profile of each phase; the controller then runs in weirlab")
	flags.StringVarP(&output, "output", "o", "text", "how to print the figures: text or json")
	return cmd
}

// newProfiledCommand returns the controller process of scale --profiles.
func newProfiledCommand() *cobra.Command {
	opts := app.Options{ClusterName: "kubernetes", Election: k8s.DefaultElection(), Requeue: k8s.DefaultQueueBackoff(), LoadBalancerClass: app.LoadBalancerClass}
	var profiles string
	cmd := &cobra.Command{
		Use: scale.ProfiledCommand, Hidden: true, Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			var err error
			if opts.Log, err = app.NewLog(os.Stderr, "text", 0); err != nil {
				return err
			}
			if err := scale.ServeProfiles(ctx, profiles); err != nil {
				return err
			}
			return app.Run(ctx, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&profiles, "profiles-bind-address", "", "address of the profiler")
	flags.StringVar(&opts.Kubeconfig, "kubeconfig", "", "kubeconfig file")
	flags.StringVar(&opts.ConfigFile, "config", "", "azure.json")
	flags.StringVar(&opts.AzureEndpoint, "azure-endpoint", "", "the emulator")
	flags.BoolVar(&opts.LeaderElect, "leader-elect", false, "take part in leader election")
	flags.StringVar(&opts.MetricsAddress, "metrics-bind-address", "", "address of /metrics")
	flags.StringVar(&opts.OperatorAddress, "operator-bind-address", "0", "address that serves weir calls")
	flags.StringVar(&opts.HealthAddress, "health-probe-bind-address", "", "address of /readyz")
	return cmd
}
