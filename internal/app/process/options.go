// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"unicode"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/requestlog"
)

// Options are the flags shared by controller and provisioner.
type Options struct {
	// Kubeconfig defaults to the pod's ServiceAccount, else kubectl's loading rules.
	Kubeconfig string

	LeaderElect          bool
	LeaderElectNamespace string
	Election             k8s.Election

	// MetricsAddress and HealthAddress are host:port; "0" means off.
	MetricsAddress, HealthAddress string
	// MetricsSecure serves metrics over HTTPS, only to clients that the API server authorizes.
	MetricsSecure bool

	Requeue k8s.QueueBackoff
	Log     *slog.Logger
}

// UsageError is an error in a flag or file that the caller must correct.
type UsageError struct{ Err error }

// Error returns the message of the wrapped error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *UsageError) Unwrap() error { return e.Err }

// SanitizeText replaces control and bidirectional characters, which could steer the terminal.
func SanitizeText(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Validate returns a *UsageError for the first flag with an invalid value.
func (o Options) Validate() error {
	if err := CheckAddress("--metrics-bind-address", o.MetricsAddress); err != nil {
		return err
	}
	if err := CheckAddress("--health-probe-bind-address", o.HealthAddress); err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(o.MetricsAddress); o.MetricsAddress != "0" && !o.MetricsSecure && !requestlog.IsLoopback(host) {
		return &UsageError{fmt.Errorf("--metrics-bind-address %q: anyone with access to it could read the metrics: add --metrics-secure, or use a loopback address such as 127.0.0.1:8080", o.MetricsAddress)}
	}
	if err := o.Election.Validate(); err != nil {
		return &UsageError{fmt.Errorf("--leader-elect-%w", err)} // the error begins with the rest of the flag name
	}
	if err := o.Requeue.Validate(); err != nil {
		return &UsageError{fmt.Errorf("--requeue-%w", err)} // the error begins with the rest of the flag name
	}
	return nil
}

// CheckAddress returns a *UsageError for an address that is neither host:port nor 0.
func CheckAddress(flag, address string) error {
	if address == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return &UsageError{fmt.Errorf("%s %q: want host:port, or 0 for off", flag, address)}
	}
	return nil
}

// ClusterConfig returns the client configuration, and whether this process is a pod of the cluster.
func ClusterConfig(kubeconfig string) (cfg *rest.Config, inCluster bool, err error) {
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

// KubeconfigError returns a *UsageError that names the kubeconfig or the searched paths; nil if err is nil.
func KubeconfigError(kubeconfig string, err error) error {
	switch {
	case err == nil:
		return nil
	case kubeconfig != "":
		return &UsageError{fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)}
	case clientcmd.IsEmptyConfig(err):
		searched := clientcmd.NewDefaultClientConfigLoadingRules().Precedence // $KUBECONFIG, or the file in the home directory
		return &UsageError{fmt.Errorf("no kubeconfig in %s: name one by --kubeconfig or $KUBECONFIG", strings.Join(searched, " nor in "))}
	}
	return &UsageError{fmt.Errorf("kubeconfig: %w", err)}
}

// WithReachability sets the user agent and reports request results to reach.
func WithReachability(reach *k8s.Connection, cfg *rest.Config, program string) *rest.Config {
	return reach.ClientConfig(cfg, program+"/"+Version)
}

const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// LeaseNamespace returns the namespace of the leader's Lease.
func (o Options) LeaseNamespace(inCluster bool) string {
	if o.LeaderElectNamespace != "" {
		return o.LeaderElectNamespace
	}
	if inCluster {
		if name, err := os.ReadFile(podNamespaceFile); err == nil {
			return strings.TrimSpace(string(name))
		}
	}
	return "kube-system"
}
