// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app"
)

// Flags are kubectl's connection flags.
type Flags struct{ *genericclioptions.ConfigFlags }

// NewFlags returns flags with kubectl's defaults. It omits --cache-dir, because no command caches discovery.
func NewFlags() Flags {
	f := genericclioptions.NewConfigFlags(false)
	f.CacheDir = nil
	return Flags{f}
}

// NewClusterClient returns a client, and the namespace of -n or of the current context. A *app.UsageError means that a
// flag or the kubeconfig must be corrected.
func (f Flags) NewClusterClient() (client.Client, string, error) {
	rc, namespace, err := f.LoadConfig()
	if err != nil {
		return nil, "", err
	}
	c, err := NewClient(rc)
	return c, namespace, err
}

// userAgent begins the User-Agent header of commands: audit logs distinguish them from the controller.
const userAgent = "weir-cli/"

// LoadConfig returns the client configuration, and the namespace of -n or of the current context. Without a kubeconfig it
// is that of the pod's service account.
func (f Flags) LoadConfig() (*rest.Config, string, error) {
	loaded := f.ToRawKubeConfigLoader()
	if err := f.checkServer(loaded); err != nil {
		return nil, "", err
	}
	rc, err := f.ToRESTConfig()
	if err != nil {
		return nil, "", app.KubeconfigError(*f.KubeConfig, err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, "", app.KubeconfigError(*f.KubeConfig, err)
	}
	rc.QPS, rc.UserAgent = -1, userAgent+app.Version
	return rc, namespace, nil
}

// REST is LoadConfig without the namespace.
func (f Flags) REST() (*rest.Config, error) {
	rc, _, err := f.LoadConfig()
	return rc, err
}

// checkServer returns an error if nothing names an API server. cli-runtime would use localhost:8080.
func (f Flags) checkServer(loaded clientcmd.ClientConfig) error {
	raw, err := loaded.RawConfig()
	if err != nil {
		return app.KubeconfigError(*f.KubeConfig, err)
	}
	if !clientcmdapi.IsConfigEmpty(&raw) || *f.APIServer != "" || isPod() {
		return nil
	}
	return app.KubeconfigError(*f.KubeConfig, clientcmd.ErrEmptyConfig)
}

func isPod() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}

// OwnAccount returns the namespace and name of the service account of this pod; empty outside of a pod.
func (f Flags) OwnAccount(ctx context.Context, api client.Client) (namespace, name string) {
	if !isPod() {
		return "", ""
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(ctx, review); err != nil {
		return "", ""
	}
	return parseAccount(review.Status.UserInfo.Username)
}

func parseAccount(user string) (namespace, name string) {
	account, found := strings.CutPrefix(user, "system:serviceaccount:")
	if !found {
		return "", ""
	}
	if namespace, name, found = strings.Cut(account, ":"); !found {
		return "", ""
	}
	return namespace, name
}

// HasNamespace reports whether -n was given.
func (f Flags) HasNamespace() bool { return f.Namespace != nil && *f.Namespace != "" }

// ContextName returns the name of the context, or "".
func (f Flags) ContextName() string {
	if *f.Context != "" {
		return *f.Context
	}
	raw, err := f.ToRawKubeConfigLoader().RawConfig()
	if err != nil { // LoadConfig reports the error
		return ""
	}
	return raw.CurrentContext
}

// NewConnection returns the connection to a controller's URL, or to the leader in Weir's namespace if the URL is empty.
func (f Flags) NewConnection(url, weirNamespace string) (app.Connection, error) {
	if url != "" {
		return app.Connection{Server: url}, nil
	}
	rc, _, err := f.LoadConfig()
	return Leader{API: rc, Namespace: weirNamespace}.Connection(), err
}
