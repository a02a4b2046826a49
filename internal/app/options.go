// SPDX-License-Identifier: Apache-2.0

// Package app wires all packages of the controller.
package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"

	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/requestlog"
	"weir.dev/weir/internal/zones"
)

// Options are the flags of the controller.
type Options struct {
	// Kubeconfig defaults to the pod's service account, else kubectl's loading rules.
	Kubeconfig  string
	ConfigFile  string
	ClusterName string
	// AzureEndpoint is an emulator's URL on a loopback address; empty means Azure.
	AzureEndpoint string
	// AzureBehaviour is a probe report; empty means none.
	AzureBehaviour string

	knownBehavior behavior.Behavior
	// zones are the availability zones of the regions; nil if none are used.
	zones *zones.Regions

	LeaderElect          bool
	LeaderElectNamespace string
	Election             k8s.Election
	// MetricsAddress, HealthAddress and OperatorAddress are host:port; "0" means off. OperatorAddress must be
	// a loopback address; empty means off, too.
	MetricsAddress, HealthAddress, OperatorAddress string
	// MetricsSecure serves metrics over HTTPS, only to clients that the API server authorizes.
	MetricsSecure bool

	// LoadBalancerClass is the spec.loadBalancerClass of the managed Services; empty means Services without
	// one.
	LoadBalancerClass string

	// AllowRemoval permits removing any number of Service addresses.
	AllowRemoval bool

	// ReadinessGates opens the readiness gates of pods.
	ReadinessGates bool

	// DelayNodeDeletion annotates members for the cluster autoscaler.
	DelayNodeDeletion bool

	// GatewayAPI serves Gateways.
	GatewayAPI bool

	Requeue k8s.QueueBackoff

	Log *slog.Logger
}

// LoadBalancerClass is the default class of the managed Services.
const LoadBalancerClass = "weir.dev/azure"

// UsageError is an error that the caller must correct.
type UsageError = process.UsageError

// Aliases of package process, for commands.
var (
	Version         = process.Version
	NewLog          = process.NewLog
	KubeconfigError = process.KubeconfigError
)

// clusterNameRule keeps the name valid in Azure resource names.
var clusterNameRule = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,62}[0-9A-Za-z_])?$`)

func (o Options) validate() error {
	if err := o.checkNames(); err != nil {
		return err
	}
	if err := o.processOptions().Validate(); err != nil {
		return err
	}
	if err := process.CheckAddress("--operator-bind-address", cmp.Or(o.OperatorAddress, "0")); err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(o.OperatorAddress); o.hasOperatorServer() && !requestlog.IsLoopback(host) {
		return &UsageError{Err: fmt.Errorf("--operator-bind-address %q: any client that reaches it could read Weir's requests: use a loopback address such as 127.0.0.1:8082, and kubectl port-forward", o.OperatorAddress)}
	}
	return nil
}

// processOptions returns the flags shared with the provisioner.
func (o Options) processOptions() process.Options {
	return process.Options{
		Kubeconfig: o.Kubeconfig, LeaderElect: o.LeaderElect, LeaderElectNamespace: o.LeaderElectNamespace, Election: o.Election,
		MetricsAddress: o.MetricsAddress, HealthAddress: o.HealthAddress, MetricsSecure: o.MetricsSecure, Requeue: o.Requeue, Log: o.Log,
	}
}

func (o Options) hasOperatorServer() bool { return o.OperatorAddress != "" && o.OperatorAddress != "0" }

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
	systemNamespace  = "kube-system"
	installNamespace = "weir-system"
)
