// SPDX-License-Identifier: Apache-2.0

// Package reach is the way from a command line to the API server, with the rights of whoever calls, and to the
// BackendPools that he names.
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

// Cluster returns a client with the rights of whoever calls, and the namespace of the current
// context. A *app.UsageError is a kubeconfig that has to be corrected.
func Cluster(kubeconfig string) (client.Client, string, error) {
	rc, namespace, err := Config(kubeconfig)
	if err != nil {
		return nil, "", err
	}
	c, err := Client(rc)
	return c, namespace, err
}

// Config says where the API server is, and as whom it is asked; and the namespace of the current context.
func Config(kubeconfig string) (*rest.Config, string, error) {
	loaded := load(kubeconfig)
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

// answersWithin is how long the API server may take for the first question, which kinds there are: one that
// takes connections and says nothing is told from one that has much to say.
const answersWithin = 5 * time.Second

// Client returns a client for what commands ask. It sends nothing yet.
func Client(rc *rest.Config) (client.Client, error) {
	scheme := view.Scheme()
	if err := errors.Join(coordinationv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	first := rest.CopyConfig(rc)
	first.Timeout = answersWithin
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

// Asked is the way to a running Weir: to one that is told, or to the leader in a namespace with the rights of whoever calls.
func Asked(server, kubeconfig, namespace string) (app.Way, error) {
	if server != "" {
		return app.Way{Server: server}, nil
	}
	rc, _, err := Config(kubeconfig)
	return Leader{API: rc, Namespace: namespace}.Way(), err
}

// Name is what whoever calls names the cluster: the context of the kubeconfig; empty if it has none.
func Name(kubeconfig string) string {
	raw, err := load(kubeconfig).RawConfig()
	if err != nil { // Cluster says what is the matter
		return ""
	}
	return raw.CurrentContext
}

func load(kubeconfig string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
}
