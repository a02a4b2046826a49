// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"weir.dev/weir/lab/demo"
)

func newDemoCommand() *cobra.Command {
	var opts demo.Options
	var output string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch Weir give Services load balancers and keep their pools in sync",
		Long: `Starts a real kube-apiserver with its controllers (kubelab), an emulated Azure
Resource Manager and the controller, and has the cluster scale, restart, lose
and drain nodes, while the controller is killed once, and Azure throttles and
another client writes the load balancer for twelve seconds. Then fifty Services come,
change and go together. With --full two spot machines are evicted, one of them while
Weir leaves admin states alone, a Service is published to other networks, and a Gateway
is served. It prints what happens and how far each pool is in sync, and compares the
pools in Azure with the nodes and endpoints of the cluster.

It needs kubelab and weir beside weirlab: make demo builds all three.

Exit codes: 0 all is in sync, 1 it is not, 2 a flag is wrong, 130 Ctrl-C,
141 the output was closed.`,
		Example: `  weirlab demo
  weirlab demo --full
  weirlab demo --stay
  weirlab demo --nodes 30 --seed 7
  weirlab demo -o json 2>/dev/null`,
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
			ctx, stop := withSignals(cmd.Context())
			defer stop()
			return demo.Run(ctx, opts)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&opts.Full, "full", false, "play all five acts: also spot machines that are evicted, a Service that is published to other networks, and a Gateway")
	flags.BoolVar(&opts.Stay, "stay", false, "keep all running after the story, until Ctrl-C, and print commands to try")
	flags.IntVar(&opts.Nodes, "nodes", 10, fmt.Sprintf("number of nodes that the cluster grows to, %d to %d", demo.MinNodes, demo.MaxNodes))
	flags.Uint64Var(&opts.Seed, "seed", 1, "decides Azure's latencies and which nodes are hit")
	flags.StringVarP(&output, "output", "o", "text", "how to print the summary: text, or json, with the story on standard error")
	return cmd
}
