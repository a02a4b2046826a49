// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/k8s"
)

// errProvisioning explains a flag that was removed.
var errProvisioning = errors.New("--provisioning: the controller does not handle Provisions: remove the flag, and run weir-provisioner" +
	" (kubectl apply --server-side -k config/provisioning; with the chart provisioner.enabled=true), as docs/guide/upgrade.md describes")

func newController() *cobra.Command {
	var opts app.Options
	var logFormat string
	var verbosity int
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the controller",
		Long: `Runs the controller until it receives SIGTERM or SIGINT. It needs the CRDs of config/crd in the
cluster. Logs go to standard error: text on a terminal, JSON elsewhere.`,
		Example: `  # Outside a cluster, against Azure:
  weir controller --kubeconfig ~/.kube/config --config azure.json

  # Against an emulator on this machine:
  weirlab emulator --listen 127.0.0.1:9443 &
  weir controller --kubeconfig kubeconfig --config azure.json --azure-endpoint http://127.0.0.1:9443`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("provisioning") {
				return &app.UsageError{Err: errProvisioning}
			}
			log, err := app.NewLog(os.Stderr, logFormat, verbosity)
			if err != nil {
				return &app.UsageError{Err: err}
			}
			opts.Log = log
			return app.Run(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Bool("provisioning", false, "of earlier releases")
	_ = f.MarkHidden("provisioning")
	f.StringVar(&opts.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the pod's service account, else $KUBECONFIG or ~/.kube/config")
	f.StringVar(&opts.ConfigFile, "config", config.DefaultPath, "azure.json: which Azure, and what in it")
	f.StringVar(&opts.ClusterName, "cluster-name", "kubernetes", "name of the cluster in Azure; another one than is on record stops the start")
	f.StringVar(&opts.LoadBalancerClass, "load-balancer-class", app.LoadBalancerClass, "spec.loadBalancerClass of the Services that get a load balancer; empty: those without a class, where no other service controller runs")
	f.BoolVar(&opts.AllowRemoval, "allow-removal", false, "remove addresses from any number of Services without their annotation; remove this flag when that is done")
	f.BoolVar(&opts.GatewayAPI, "gateway-api", false, "serve Gateways of classes of weir.dev/gateway-controller, once the CRDs of Gateway API exist")
	f.BoolVar(&opts.DelayNodeDeletion, "delay-node-deletion", false, "keep the cluster autoscaler from deleting machines that take new flows, for two minutes at most")
	f.BoolVar(&opts.ReadinessGates, "readiness-gates", false, "open the readiness gates that config/readiness-gates adds to pods")
	f.StringVar(&opts.AzureEndpoint, "azure-endpoint", "", "an emulator on this machine instead of Azure, e.g. http://127.0.0.1:9443; only loopback is accepted")
	f.StringVar(&opts.AzureBehaviour, "azure-behaviour", "", "report of weirlab probe-azure: what Azure does, in place of what is assumed of it")
	f.BoolVar(&opts.LeaderElect, "leader-elect", true, "take part in leader election; only the leader writes to Azure")
	f.StringVar(&opts.LeaderElectNamespace, "leader-elect-namespace", "", "namespace of the leader's lease and of the record of the cluster's name; empty: the pod's own, outside a cluster kube-system")
	election := k8s.DefaultElection()
	f.DurationVar(&opts.Election.LeaseDuration, "leader-elect-lease-duration", election.LeaseDuration, "how long others wait for the leader's next renewal before they lead; whole seconds")
	f.DurationVar(&opts.Election.RenewDeadline, "leader-elect-renew-deadline", election.RenewDeadline, "how long the leader writes after its last renewal; shorter than the lease by what a request may take")
	f.DurationVar(&opts.Election.RetryPeriod, "leader-elect-retry-period", election.RetryPeriod, "how often the leader renews its lease, and others try for it")
	f.StringVar(&opts.MetricsAddress, "metrics-bind-address", "127.0.0.1:8080", "address of /metrics; 0 is off; one that others reach needs --metrics-secure")
	f.BoolVar(&opts.MetricsSecure, "metrics-secure", false, "serve /metrics over HTTPS, only to clients that the API server authorizes to get it")
	f.StringVar(&opts.HealthAddress, "health-probe-bind-address", "127.0.0.1:8081", "address of /healthz and /readyz; 0 is off")
	f.StringVar(&opts.OperatorAddress, "operator-bind-address", "127.0.0.1:8082", "address that serves weir calls; 0 is off; only loopback is accepted")
	requeue := k8s.DefaultQueueBackoff()
	f.DurationVar(&opts.Requeue.BaseDelay, "requeue-base-delay", requeue.BaseDelay, "how long an object waits after the first error of its reconciliation; each further one doubles it")
	f.DurationVar(&opts.Requeue.MaxDelay, "requeue-max-delay", requeue.MaxDelay, "the longest such wait; an event ends it at once")
	f.Float64Var(&opts.Requeue.QPS, "requeue-qps", requeue.QPS, "how many objects a second come back after an error, over all")
	f.IntVar(&opts.Requeue.Burst, "requeue-burst", requeue.Burst, "how many may come back beyond that at once")
	f.StringVar(&logFormat, "log-format", "auto", "auto, text or json")
	f.IntVarP(&verbosity, "verbosity", "v", 0, "0 for operators; 1 also logs why nothing was done")
	return cmd
}
