// SPDX-License-Identifier: Apache-2.0

// Package app wires the rooms together. It is the only place that knows everyone.
package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/kube/apiserver"
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

	// Provisioning has Provisions be worked on, which needs the role of config/provisioning.
	Provisioning bool

	// Requeue is the back-off of the work queues.
	Requeue workqueue.Backoff

	Log *slog.Logger
}

// LoadBalancerClass is the class of the Services that Weir serves, unless a flag says
// otherwise.
const LoadBalancerClass = "weir.dev/azure"

// UsageError is what the caller has to correct: a flag or a file.
type UsageError struct{ Err error }

// Error returns the message of what is wrong.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// clusterNameRule keeps the name fit for names of Azure resources made from it.
var clusterNameRule = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,62}[0-9A-Za-z_])?$`)

func (o Options) validate() error {
	if err := o.checkNames(); err != nil {
		return err
	}
	for flag, address := range map[string]string{"--metrics-bind-address": o.MetricsAddress, "--health-probe-bind-address": o.HealthAddress, "--operator-bind-address": cmp.Or(o.OperatorAddress, "0")} {
		if address == "0" {
			continue
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return &UsageError{fmt.Errorf("%s %q: want host:port, or 0 for off", flag, address)}
		}
	}
	if host, _, _ := net.SplitHostPort(o.MetricsAddress); o.MetricsAddress != "0" && !o.MetricsSecure && !operator.Loopback(host) {
		return &UsageError{fmt.Errorf("--metrics-bind-address %q: whoever reaches it could read the metrics: add --metrics-secure, or use a loopback address such as 127.0.0.1:8080", o.MetricsAddress)}
	}
	if host, _, _ := net.SplitHostPort(o.OperatorAddress); o.serves() && !operator.Loopback(host) {
		return &UsageError{fmt.Errorf("--operator-bind-address %q: whoever reaches it could read which requests Weir makes: use a loopback address such as 127.0.0.1:8082, and kubectl port-forward", o.OperatorAddress)}
	}
	if err := o.Election.Validate(); err != nil {
		return &UsageError{fmt.Errorf("--leader-elect-%w", err)} // it begins with the flag's own part
	}
	if err := o.Requeue.Validate(); err != nil {
		return &UsageError{fmt.Errorf("--requeue-%w", err)} // it begins with the flag's own part
	}
	return nil
}

// serves reports whether people are answered.
func (o Options) serves() bool { return o.OperatorAddress != "" && o.OperatorAddress != "0" }

// checkNames checks what says which Services are served, and under which names.
func (o Options) checkNames() error {
	if !clusterNameRule.MatchString(o.ClusterName) {
		return &UsageError{fmt.Errorf("--cluster-name %q: want 1 to 64 letters, digits, '_', '-' or '.', starting with a letter or digit", o.ClusterName)}
	}
	if problems := validation.IsQualifiedName(o.LoadBalancerClass); o.LoadBalancerClass != "" && len(problems) > 0 {
		return &UsageError{fmt.Errorf("--load-balancer-class %q: want a name such as %s, or nothing for the Services without a class: %s",
			o.LoadBalancerClass, LoadBalancerClass, problems[0])}
	}
	return nil
}

// clusterConfig returns how to reach the API server, and whether this is a pod of it.
func clusterConfig(kubeconfig string) (cfg *rest.Config, inCluster bool, err error) {
	if kubeconfig == "" {
		if cfg, err := rest.InClusterConfig(); err == nil {
			return cfg, true, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	return cfg, false, KubeconfigError(kubeconfig, err)
}

// KubeconfigError is why a kubeconfig is of no use, a *UsageError; nil if there is no such error. An empty name is that of where one is
// looked for by default.
func KubeconfigError(kubeconfig string, err error) error {
	switch {
	case err == nil:
		return nil
	case kubeconfig != "":
		return &UsageError{fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)}
	case clientcmd.IsEmptyConfig(err):
		looked := clientcmd.NewDefaultClientConfigLoadingRules().Precedence // those of $KUBECONFIG, or that of the home directory
		return &UsageError{fmt.Errorf("no kubeconfig in %s: name one by --kubeconfig or $KUBECONFIG", strings.Join(looked, " nor in "))}
	}
	return &UsageError{fmt.Errorf("kubeconfig: %w", err)}
}

func asWeir(reach *apiserver.Reach, cfg *rest.Config) *rest.Config {
	return reach.Config(cfg, "weir/"+Version)
}

const (
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	systemNamespace  = "kube-system"
	// shippedNamespace is where config/ installs the controller.
	shippedNamespace = "weir-system"
)

// leaseNamespace returns where the leader's lease lives.
func (o Options) leaseNamespace(inCluster bool) string {
	if o.LeaderElectNamespace != "" {
		return o.LeaderElectNamespace
	}
	if inCluster {
		if name, err := os.ReadFile(podNamespaceFile); err == nil {
			return strings.TrimSpace(string(name))
		}
	}
	return systemNamespace
}
