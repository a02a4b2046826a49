// SPDX-License-Identifier: Apache-2.0

// Package reach connects commands to the API server and the leader with the caller's permissions.
package reach

import (
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/kube/view"
)

// NewClusterClient returns a client and the namespace of the current context. A *app.UsageError means that the
// kubeconfig must be corrected.
func NewClusterClient(kubeconfig string) (client.Client, string, error) {
	rc, namespace, err := LoadConfig(kubeconfig)
	if err != nil {
		return nil, "", err
	}
	c, err := NewClient(rc)
	return c, namespace, err
}

// LoadConfig returns the client configuration and the namespace of the current context.
func LoadConfig(kubeconfig string) (*rest.Config, string, error) {
	loaded := loadKubeconfig(kubeconfig)
	rc, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", app.KubeconfigError(kubeconfig, err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, "", app.KubeconfigError(kubeconfig, err)
	}
	rc.QPS, rc.UserAgent = -1, "weir/"+app.Version
	return rc, namespace, nil
}

// discoveryTimeout is the timeout of API discovery, the first request: it detects an unresponsive API server
// early without limiting later requests.
const discoveryTimeout = 5 * time.Second

// NewClient returns a client for commands. It sends no request.
func NewClient(rc *rest.Config) (client.Client, error) {
	scheme := view.Scheme()
	if err := errors.Join(coordinationv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	first := rest.CopyConfig(rc)
	first.Timeout = discoveryTimeout
	hc, err := rest.HTTPClientFor(first)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(first, hc)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	c, err := client.New(rc, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return c, nil
}

// NewConnection returns the connection to a server URL, or to the leader if the URL is empty.
func NewConnection(server, kubeconfig, namespace string) (app.Connection, error) {
	if server != "" {
		return app.Connection{Server: server}, nil
	}
	rc, _, err := LoadConfig(kubeconfig)
	return Leader{API: rc, Namespace: namespace}.Connection(), err
}

// ContextName returns the current context of the kubeconfig, or "".
func ContextName(kubeconfig string) string {
	raw, err := loadKubeconfig(kubeconfig).RawConfig()
	if err != nil { // Cluster reports the error
		return ""
	}
	return raw.CurrentContext
}

func loadKubeconfig(kubeconfig string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
}
