// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"weir.dev/weir/internal/app"
)

// Without a kubeconfig and outside of a pod there is no cluster: not localhost:8080, as in kubectl.
func TestNoKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := NewFlags().REST()
	if usage, ok := errors.AsType[*app.UsageError](err); !ok || !strings.HasPrefix(usage.Error(), "no kubeconfig in ") {
		t.Errorf("%v", err)
	}
	f := NewFlags()
	*f.APIServer = "https://192.0.2.1"
	if rc, err := f.REST(); err != nil || rc.Host != "https://192.0.2.1" {
		t.Errorf("%v, %v", rc, err)
	}
}

// The flags take precedence over the kubeconfig.
func TestFlagsOverKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	kc := clientcmdapi.NewConfig()
	for _, name := range []string{"one", "two"} {
		kc.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + name + ".example"}
		kc.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: name}
		kc.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "of-" + name}
	}
	kc.CurrentContext = "one"
	if err := clientcmd.WriteToFile(*kc, file); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		set                                 func(Flags)
		host, token, namespace, context, as string
	}{
		{func(Flags) {}, "https://one.example", "one", "of-one", "one", ""},
		{func(f Flags) { *f.Context = "two" }, "https://two.example", "two", "of-two", "two", ""},
		{func(f Flags) { *f.ClusterName, *f.AuthInfoName = "two", "two" }, "https://two.example", "two", "of-one", "one", ""},
		{func(f Flags) { *f.Namespace, *f.Impersonate = "shop", "jane" }, "https://one.example", "one", "shop", "one", "jane"},
	} {
		f := NewFlags()
		*f.KubeConfig = file
		tt.set(f)
		rc, namespace, err := f.LoadConfig()
		if err != nil {
			t.Fatal(err)
		}
		if rc.Host != tt.host || rc.BearerToken != tt.token || namespace != tt.namespace || f.ContextName() != tt.context || rc.Impersonate.UserName != tt.as || !strings.HasPrefix(rc.UserAgent, "weir-cli/") {
			t.Errorf("%s %s %s %s %q, want %+v", rc.Host, rc.BearerToken, namespace, f.ContextName(), rc.Impersonate.UserName, tt)
		}
	}
}
