// SPDX-License-Identifier: Apache-2.0

// Command weir-provisioner runs the controller of Provisions.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/k8s"
)

func main() { os.Exit(run(os.Args[1:])) }

// run returns the exit code: 0 on success, 2 for errors in flags or files, 1 for all other errors.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "weir-provisioner: %s\n", process.SanitizeText(err.Error()))
	if _, ok := errors.AsType[*process.UsageError](err); ok {
		return 2
	}
	return 1
}

func newRoot() *cobra.Command {
	var opts process.Options
	var logFormat string
	var verbosity int
	cmd := &cobra.Command{
		Use:   "weir-provisioner",
		Short: "Provisions clusters: works on Provisions",
		Long: `Works on Provisions until it is stopped. It needs the definitions of config/crd and the roles of
config/provisioning. It needs no azure.json and no rights in Azure. Logs are written to standard error:
text on a terminal, JSON elsewhere. To see Provisions, and to cancel or retry them, use weir provision.

Exit codes: 0 done, 1 failed, 2 a flag or a file has to be corrected.`,
		Example: `  # Outside a cluster
  weir-provisioner --kubeconfig ~/.kube/config

  # In a cluster
  kubectl apply --server-side -k config/provisioning
  kubectl -n weir-system logs deployment/weir-provisioner`,
		Version:       process.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := process.NewLog(os.Stderr, logFormat, verbosity)
			if err != nil {
				return &process.UsageError{Err: err}
			}
			opts.Log = log
			return runProvisioner(cmd.Context(), opts)
		},
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &process.UsageError{Err: fmt.Errorf("%w: run %s --help", err, cmd.CommandPath())}
	})
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(newRenderChart())
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&opts.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the pod's ServiceAccount, else $KUBECONFIG or ~/.kube/config")
	f.BoolVar(&opts.LeaderElect, "leader-elect", true, "take part in leader election; only the leader makes attempts")
	f.StringVar(&opts.LeaderElectNamespace, "leader-elect-namespace", "", "namespace of the Lease "+k8s.ProvisionerLease+"; empty: the pod's own, outside a cluster kube-system")
	election := k8s.DefaultElection()
	f.DurationVar(&opts.Election.LeaseDuration, "leader-elect-lease-duration", election.LeaseDuration, "how long others wait for the leader's next renewal before they lead; whole seconds")
	f.DurationVar(&opts.Election.RenewDeadline, "leader-elect-renew-deadline", election.RenewDeadline, "how long the leader writes after its last renewal; less than the lease duration by the time that a request may take")
	f.DurationVar(&opts.Election.RetryPeriod, "leader-elect-retry-period", election.RetryPeriod, "how often the leader renews its Lease, and others try to get it")
	f.StringVar(&opts.MetricsAddress, "metrics-bind-address", "127.0.0.1:8083", "address of /metrics; 0 is off; one that others reach needs --metrics-secure")
	f.BoolVar(&opts.MetricsSecure, "metrics-secure", false, "serve /metrics over HTTPS, only to clients that the API server authorizes")
	f.StringVar(&opts.HealthAddress, "health-probe-bind-address", "127.0.0.1:8084", "address of /healthz and /readyz; 0 is off")
	requeue := k8s.DefaultQueueBackoff()
	f.DurationVar(&opts.Requeue.BaseDelay, "requeue-base-delay", requeue.BaseDelay, "how long a Provision waits after the first error of its reconciliation; each further error doubles it")
	f.DurationVar(&opts.Requeue.MaxDelay, "requeue-max-delay", requeue.MaxDelay, "the longest such wait; an event ends it at once")
	f.Float64Var(&opts.Requeue.QPS, "requeue-qps", requeue.QPS, "how many Provisions a second are reconciled again after errors")
	f.IntVar(&opts.Requeue.Burst, "requeue-burst", requeue.Burst, "how many may exceed that at once")
	f.StringVar(&logFormat, "log-format", "auto", "auto, text or json")
	f.IntVarP(&verbosity, "verbosity", "v", 0, "0 for operators; 1 also logs why nothing was done")
	return cmd
}

func rejectArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &process.UsageError{Err: fmt.Errorf("%s has no arguments, got %q: run %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return nil
}
