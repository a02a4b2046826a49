// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
	"weir.dev/weir/internal/ratelimit"
)

const plainKubeconfig = `
apiVersion: v1
kind: Config
current-context: edge
contexts: [{name: edge, context: {cluster: edge, user: edge%s}}]
clusters: [{name: edge, cluster: {server: "%s"%s}}]
users: [{name: edge, user: {token: tok-123456%s}}]
`

// The memory for a kubeconfig is bounded before decoding, because tenants write it.
func TestKubeconfigsAreSmall(t *testing.T) {
	plain := fmt.Sprintf(plainKubeconfig, "", "https://edge", "", "")
	for want, text := range map[string]string{
		"it has more than 10000 values": plain + "x: [" + strings.Repeat("{},", 10_000) + "{}]\n",
		"it has more than 256 KiB":      plain + "x: " + strings.Repeat("x", 256<<10) + "\n",
		"anchors and aliases":           plain + "x: &x [a]\n",
	} {
		if _, _, err := parseKubeconfig([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A target must not be an address of this machine, under any name.
func TestAddressesOfTargets(t *testing.T) {
	for address, want := range map[string]bool{
		"10.1.2.3:443": true, "203.0.113.7:6443": true, "[2001:db8::1]:443": true,
		"169.254.169.254:80": false, "168.63.129.16:80": false, "127.0.0.1:8081": false, "[::1]:443": false, "0.0.0.0:443": false,
		"[fe80::1]:443": false, "[::ffff:169.254.169.254]:443": false, "[::ffff:127.0.0.1]:443": false, "224.0.0.1:443": false, "edge": false,
		"[64:ff9b::a9fe:a9fe]:80": false, "[64:ff9b::7f00:1]:8081": false,
	} {
		if err := (dialPolicy{}).checkAddress("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip := netip.MustParsePrefix(a.String()).Addr()
		if err := (dialPolicy{}).checkAddress("tcp", netip.AddrPortFrom(ip, 10250).String(), nil); err == nil {
			t.Errorf("%s is this machine's", ip)
		}
	}
	if err := (dialPolicy{isLocal: true}).checkAddress("tcp", "127.0.0.1:6443", nil); err != nil {
		t.Errorf("this cluster's API server may be on this machine: %v", err)
	}
	for host, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://localhost:1": true, "https://LOCALHOST.:1": true, "https://a.localhost": true, "https://[::1]:1": true,
		"https://[::ffff:127.0.0.1]:1": true, "https://127.1.2.3": true, "https://10.0.0.1": false, "127.0.0.1": false, "https://kubernetes.default": false,
	} {
		if onLoopback(host) != want {
			t.Errorf("%s: want %v", host, want)
		}
	}
}

// Where Weir's API server is on loopback, a kubeconfig may lead only to other addresses of the
// machine.
func TestNoTargetIsOnLoopback(t *testing.T) {
	reached := make(chan string, 100)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { reached <- req.URL.Path }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST.", "a.localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "127.1", "0177.0.0.1", "2130706433", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]"} {
		for _, api := range []string{"https://127.0.0.1:6443", "https://localhost:6443", "https://10.0.0.1"} {
			objects := newRemote(0, nodeWaitStep, v1alpha1.RetryPolicy{}, true)
			secret, ok := objects[1].(*corev1.Secret)
			if !ok {
				t.Fatal("the kubeconfig is not the second object")
			}
			at := net.JoinHostPort(strings.Trim(host, "[]"), port)
			secret.Data["kubeconfig"] = fmt.Appendf(nil, plainKubeconfig, "", "https://"+at, ", insecure-skip-tls-verify: true", "")
			here := fakeAPI(t, interceptor.Funcs{}, objects...)
			r := New(Config{API: &rest.Config{Host: api}, Live: here, Writer: here, Log: slog.New(slog.DiscardHandler)})
			p, ok := objects[0].(*v1alpha1.Provision)
			if !ok {
				t.Fatal("the Provision is not the first object")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			to, err := r.connectTarget(ctx, p, &policy.Log{})
			if err == nil {
				err = to.discovery.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
				to.close()
			}
			if err == nil {
				t.Errorf("%s is reached beside %s", at, api)
			}
			if err := r.targetPolicy().checkReachable(ctx, at, host); err == nil {
				t.Errorf("%s is connected to beside %s", at, api)
			}
			cancel()
		}
	}
	if len(reached) > 0 {
		t.Errorf("%d requests have arrived, the first one for %s", len(reached), <-reached)
	}
	for api, want := range map[string]bool{"https://127.0.0.1:6443": true, "https://10.0.0.1": false} {
		r := New(Config{API: &rest.Config{Host: api}})
		addrs, err := net.InterfaceAddrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addrs {
			ip := netip.MustParsePrefix(a.String()).Addr()
			if err := r.targetPolicy().checkAddress("tcp", netip.AddrPortFrom(ip, 443).String(), nil); ip.IsGlobalUnicast() && (err == nil) != want {
				t.Errorf("%s beside %s: %v", ip, api, err)
			}
		}
	}
}

// A target's response ends with the attempt, is bounded, and redirects are not followed.
func TestTargetBlocksNoOther(t *testing.T) {
	elsewhere := false
	mux := http.NewServeMux()
	mux.HandleFunc("/slow", func(w http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere = true })
	mux.Handle("/away", http.RedirectHandler("/elsewhere", http.StatusFound))
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range 20 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cfg := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	hc, wire, err := (dialPolicy{isLocal: true}).newClient(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.next.CloseIdleConnections()
	get := func(path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return hc.Do(req)
	}
	if _, err := get("/away"); err == nil || !strings.Contains(err.Error(), "302 Found and redirects") || elsewhere {
		t.Errorf("a redirect: %v, followed: %v", err, elsewhere)
	}
	res, err := get("/long")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, res.Body); err == nil || n > 4<<20 {
		t.Errorf("%d bytes were read: %v", n, err)
	}
	_ = res.Body.Close()
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := get("/slow"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the attempt's end: %v", err)
	}
	if none, _, err := (dialPolicy{}).newClient(t.Context(), cfg); err != nil {
		t.Fatal(err)
	} else if _, err := none.Get(server.URL); err == nil || !strings.Contains(err.Error(), "belongs to the machine") {
		t.Errorf("an address of the machine is connected to: %v", err)
	}
}

// A Retry-After of years does not block: the attempt fails at once and records the time.
func TestTargetWithRetryAfter(t *testing.T) {
	requested := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requested++
		w.Header().Set("Retry-After", "100000000")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	began := time.Now()
	a := &run{target: connectServer(t.Context(), t, server), log: &policy.Log{}}
	_, _, err := a.checkWait(t.Context(), &v1alpha1.WaitStep{APIVersion: "v1", Kind: "Node", Name: "a"})
	if at := a.retryAfter(err, time.Now()); err == nil || at.Before(began.Add(ratelimit.MaxRetryAfter-time.Minute)) || requested > 2 {
		t.Errorf("%v: not before %s, after %d requests", err, at, requested)
	}
}

// A proxy from the environment, which would bypass the address check, is ignored.
func TestTargetsAreReachedDirectly(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://192.0.2.1:1")
	_, wire, err := (dialPolicy{}).newClient(t.Context(), &rest.Config{Host: "https://edge"})
	if err != nil || wire.next.Proxy != nil {
		t.Errorf("%v: a proxy is asked for", err)
	}
}

// A target's warnings are kept out of Weir's log.
func TestWarningsOfTargets(t *testing.T) {
	api := &fakeServer{warning: `299 - "all is lost"`}
	var log strings.Builder
	ctx := ctrllog.IntoContext(t.Context(), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
	node := &unstructured.Unstructured{}
	node.SetAPIVersion("v1")
	node.SetKind("Node")
	if err := api.newTarget(ctx, t).Get(ctx, client.ObjectKey{Name: "a"}, node); !apierrors.IsNotFound(err) || log.Len() > 0 {
		t.Errorf("%v; Weir's log: %s", err, log.String())
	}
}

type accounts struct {
	typedcorev1.ServiceAccountInterface
}

func (a accounts) ServiceAccounts(string) typedcorev1.ServiceAccountInterface { return a }

func (accounts) CreateToken(context.Context, string, *authenticationv1.TokenRequest, metav1.CreateOptions) (*authenticationv1.TokenRequest, error) {
	return &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "t"}}, nil
}

// Large responses of this cluster are read in turns, like those of targets.
func TestLargeAnswersOfThisCluster(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := New(Config{API: &rest.Config{Host: "https://192.0.2.1"}, Tokens: accounts{}})
	p := &v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: v1alpha1.ProvisionSpec{Target: v1alpha1.ProvisionTarget{ServiceAccountName: "edge"}}}
	to, err := r.connectTarget(ctx, p, &policy.Log{})
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	if to.transport.bounds.AcquireTurn == nil {
		t.Fatal("a large answer has no turn")
	}
	if _, _, err := to.transport.bounds.AcquireTurn(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, _, err := to.transport.bounds.AcquireTurn(); err == nil || !strings.Contains(err.Error(), "waiting to read a large response") {
		t.Errorf("a second one at the same time: %v", err)
	}
}

// A missing right in the Provision's namespace names the role to bind; other errors are unchanged.
func TestExplainForbidden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "edge", errors.New("no role"))
	if err := addRoleHint("shop", forbidden); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "bind the role of attempts, kubectl -n shop create rolebinding") {
		t.Error(err)
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "edge")
	if err := addRoleHint("shop", gone); !errors.Is(err, gone) || err.Error() != gone.Error() {
		t.Error(err)
	}
}
