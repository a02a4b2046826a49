// SPDX-License-Identifier: Apache-2.0

// Package app wires the rooms together. It is the only place that knows everyone.
package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"

	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/kube/leases"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/operator"
)

// Options are the flags of the controller.
type Options struct {
	// Kubeconfig is a file; empty is the pod's service account, else the default
	// loading rules of kubectl.
	Kubeconfig string
	// ConfigFile is azure.json.
	ConfigFile  string
	ClusterName string
	// AzureEndpoint is an emulator's URL on a loopback address; empty is Azure.
	AzureEndpoint string
	// AzureBehaviour is a report of a probe; empty is none.
	AzureBehaviour string
	// known is what that says; empty where nothing is known. Lanes and load balancers decide by it.
	known behaviour.Behaviour

	LeaderElect          bool
	LeaderElectNamespace string
	// Election is the pace of the leader's election.
	Election leases.Election
	// MetricsAddress and HealthAddress are host:port; "0" is off. So is OperatorAddress, which is of
	// this machine alone, and off if it is empty.
	MetricsAddress, HealthAddress, OperatorAddress string
	// MetricsSecure serves metrics over HTTPS, and to those alone whom the API server lets
	// read them.
	MetricsSecure bool

	// LoadBalancerClass is the spec.loadBalancerClass of the Services that Weir serves;
	// empty means those without one.
	LoadBalancerClass string

	// AllowRemoval lets addresses of Services be taken away, however many.
	AllowRemoval bool

	// Requeue is the back-off of the work queues.
	Requeue workqueue.Backoff

	Log *slog.Logger
}

// LoadBalancerClass is the class of the Services that Weir serves, unless a flag says
// otherwise.
const LoadBalancerClass = "weir.dev/azure"

// UsageError is an error that the caller has to correct.
type UsageError = process.UsageError

// What commands use of package process.
var (
	Version         = process.Version
	NewLog          = process.NewLog
	KubeconfigError = process.KubeconfigError
)

// clusterNameRule keeps the name fit for names of Azure resources made from it.
var clusterNameRule = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,62}[0-9A-Za-z_])?$`)

func (o Options) validate() error {
	if err := o.checkNames(); err != nil {
		return err
	}
	if err := o.process().Validate(); err != nil {
		return err
	}
	if err := process.CheckAddress("--operator-bind-address", cmp.Or(o.OperatorAddress, "0")); err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(o.OperatorAddress); o.serves() && !operator.Loopback(host) {
		return &UsageError{Err: fmt.Errorf("--operator-bind-address %q: whoever reaches it could read which requests Weir makes: use a loopback address such as 127.0.0.1:8082, and kubectl port-forward", o.OperatorAddress)}
	}
	return nil
}

// process returns the flags that the provisioner has, too.
func (o Options) process() process.Options {
	return process.Options{
		Kubeconfig: o.Kubeconfig, LeaderElect: o.LeaderElect, LeaderElectNamespace: o.LeaderElectNamespace, Election: o.Election,
		MetricsAddress: o.MetricsAddress, HealthAddress: o.HealthAddress, MetricsSecure: o.MetricsSecure, Requeue: o.Requeue, Log: o.Log,
	}
}

// serves reports whether people are answered.
func (o Options) serves() bool { return o.OperatorAddress != "" && o.OperatorAddress != "0" }

// checkNames checks what says which Services are served, and under which names.
func (o Options) checkNames() error {
	if !clusterNameRule.MatchString(o.ClusterName) {
		return &UsageError{Err: fmt.Errorf("--cluster-name %q: want 1 to 64 letters, digits, '_', '-' or '.', starting with a letter or digit", o.ClusterName)}
	}
	if problems := validation.IsQualifiedName(o.LoadBalancerClass); o.LoadBalancerClass != "" && len(problems) > 0 {
		return &UsageError{Err: fmt.Errorf("--load-balancer-class %q: want a name such as %s, or nothing for the Services without a class: %s",
			o.LoadBalancerClass, LoadBalancerClass, problems[0])}
	}
	return nil
}

const (
	systemNamespace = "kube-system"
	// shippedNamespace is where config/ installs the controller.
	shippedNamespace = "weir-system"
)
