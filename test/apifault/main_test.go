// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/apifault"
	"weir.dev/weir/test/controlplane"
)

// The tests share one kube-apiserver; api bypasses all proxies.
var (
	cluster *envtest.Environment
	api     client.Client
)

func TestMain(m *testing.M) {
	controlplane.RunWithControlPlane(m, controlplane.Options{Parallel: 64, CRDs: true, SetUp: func(env *envtest.Environment) (_ func() error, err error) {
		cluster = env
		api, err = client.New(cluster.Config, client.Options{Scheme: metadata.Scheme()})
		return func() error {
			if stopServer != nil {
				stopServer()
			}
			return nil
		}, err
	}})
}

func newProxy(t *testing.T) *apifault.Proxy {
	t.Helper()
	p, err := apifault.New(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

var namespaces atomic.Int64

func newNamespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("fault-%03d", namespaces.Add(1))
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{service.LoadBalancersAnnotation: "*"}}}); err != nil {
		t.Fatal(err)
	}
	return name
}

// caller is a client with the controller's configuration.
type caller struct {
	client.WithWatch

	raw *rest.RESTClient
	// hangUp closes idle connections.
	hangUp func()
	// tries counts requests given to the transport, even if they never reached the proxy.
	tries atomic.Int64
	then  atomic.Pointer[func(n int64)]
}

// after calls fn at the n-th try.
func (c *caller) after(n int64, fn func()) {
	c.then.Store(new(func(tries int64) {
		if tries == n {
			fn()
		}
	}))
}

func newCaller(t *testing.T, p *apifault.Proxy) *caller {
	t.Helper()
	c := &caller{}
	cfg := p.ClientConfig()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, c} })
	cfg = k8s.NewConnection(t.Context(), slog.New(slog.DiscardHandler)).ClientConfig(cfg, "weir/test")
	var err error
	if c.WithWatch, err = client.NewWithWatch(cfg, client.Options{Scheme: metadata.Scheme()}); err != nil {
		t.Fatal(err)
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	raw := rest.CopyConfig(cfg)
	raw.APIPath, raw.GroupVersion, raw.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, serializers()
	if c.raw, err = rest.RESTClientForConfigAndClient(raw, httpClient); err != nil {
		t.Fatal(err)
	}
	// The client must discover the kinds before faults begin.
	if err := c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"), client.Limit(1)); err != nil {
		t.Fatal(err)
	}
	c.hangUp = func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) }
	t.Cleanup(c.hangUp)
	c.tries.Store(0)
	p.Forget()
	return c
}

type counted struct {
	next http.RoundTripper
	by   *caller
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	n := c.by.tries.Add(1)
	res, err := c.next.RoundTrip(r)
	if then := c.by.then.Load(); then != nil {
		(*then)(n)
	}
	return res, err
}

// WrappedRoundTripper gives client-go access to the inner transport.
func (c counted) WrappedRoundTripper() http.RoundTripper { return c.next }
