// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/kube/view"
)

// Reach returns a client with the rights of whoever calls, and the namespace of the current
// context. A *app.UsageError is a kubeconfig that has to be corrected.
func Reach(kubeconfig string) (client.Client, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	rc, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", &app.UsageError{Err: fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)}
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, "", &app.UsageError{Err: fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)}
	}
	rc.QPS, rc.UserAgent = -1, "weir/"+app.Version
	c, err := client.New(rc, client.Options{Scheme: view.Scheme()})
	if err != nil {
		return nil, "", fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return c, namespace, nil
}
