// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/objects"
)

// testEnv is a controller in virtual time with a target behind in-memory pipes, and counters per
// layer.
type testEnv struct {
	t      *testing.T
	here   client.Client
	room   *Reconciler
	target *httptest.Server
	pipes  pipes
	dials  func() error // dial hook; nil connects

	one      chan struct{} // serializes reconciles
	mu       sync.Mutex
	requests int // to this cluster's API server
	writes   int // those of requests that write, and events
	again    int // work queue retries
	asked    int // requests to the target
	told     []string
	refuse   func(write bool) error // error injected into this cluster's API server
	timers   map[types.NamespacedName]*time.Timer
}

type pipes struct {
	conns chan net.Conn
	end   chan struct{}
	once  *sync.Once
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { p.once.Do(func() { close(p.end) }); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }

// newTestEnv must be called in a synctest bubble. answers is the target.
func newTestEnv(t *testing.T, answers http.Handler, objects ...client.Object) *testEnv {
	w := &testEnv{t: t, one: make(chan struct{}, 1), timers: map[types.NamespacedName]*time.Timer{}, pipes: pipes{make(chan net.Conn), make(chan struct{}), &sync.Once{}}}
	base := fakeAPI(t, interceptor.Funcs{}, objects...)
	w.here = base
	w.target = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		w.mu.Lock()
		w.asked++
		w.mu.Unlock()
		answers.ServeHTTP(rw, req)
	}))
	_ = w.target.Listener.Close()
	w.target.Listener, w.target.Config.ErrorLog = w.pipes, slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	w.target.StartTLS()
	api := interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := w.request(false); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.countWrite()
			if err := w.request(false); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			w.countWrite()
			if err := w.request(true); err != nil {
				return err
			}
			return c.SubResource(sub).Apply(ctx, obj, opts...)
		},
	})
	w.room = New(Config{API: &rest.Config{}, Cached: newCachedReader(base), Live: api, Writer: api, Events: w, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	w.room.dial, w.room.attempts.requeue, w.room.probes.requeue = w.dial, w.queueProvision, w.queueProvision
	return w
}

func newCachedReader(base client.WithWatch) client.Reader {
	return interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if p, ok := obj.(*v1alpha1.Provision); ok && err == nil {
				objects.StripProvision(p)
			}
			return err
		},
	})
}

func (e *testEnv) runWhile(do func()) {
	ctx, stop := context.WithCancel(e.t.Context())
	done := make(chan struct{})
	go func() { e.room.Run(ctx); close(done) }()
	synctest.Wait() // it leads and accepts attempts
	do()
	stop()
	<-done
	e.mu.Lock()
	for _, t := range e.timers {
		t.Stop()
	}
	e.mu.Unlock()
	e.target.Close()
	synctest.Wait() // pending work has ended
}

func (e *testEnv) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if e.dials != nil {
		if err := e.dials(); err != nil {
			return nil, err
		}
	}
	near, far := net.Pipe()
	select {
	case e.pipes.conns <- far:
		return near, nil
	case <-e.pipes.end:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *testEnv) countWrite() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writes++
}

func (e *testEnv) request(write bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests++
	if e.refuse == nil {
		return nil
	}
	return e.refuse(write)
}

func (e *testEnv) Add(_ runtime.Object, _, reason, _ string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, reason)
	e.writes++
}

// queueProvision reconciles one Provision at a time, and again after an error.
func (e *testEnv) queueProvision(key types.NamespacedName) { e.queueAfter(key, 0) }

func (e *testEnv) queueAfter(key types.NamespacedName, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.timers[key]; t != nil {
		t.Stop()
	}
	e.timers[key] = time.AfterFunc(d, func() {
		e.reconcile(key)
	})
}

func (e *testEnv) reconcile(key types.NamespacedName) {
	e.one <- struct{}{}
	defer func() { <-e.one }()
	res, err := e.room.reconcile(e.t.Context(), reconcile.Request{NamespacedName: key})
	switch {
	case e.t.Context().Err() != nil:
	case err != nil:
		e.mu.Lock()
		e.again++
		e.mu.Unlock()
		e.queueAfter(key, time.Second)
	case res.RequeueAfter > 0:
		e.queueAfter(key, res.RequeueAfter)
	}
}

func (e *testEnv) getProvision(key types.NamespacedName) *v1alpha1.Provision {
	e.t.Helper()
	var p v1alpha1.Provision
	if err := e.here.Get(e.t.Context(), key, &p); err != nil {
		e.t.Fatal(err)
	}
	return &p
}

// newRemote skips certificate verification if insecure is set.
func newRemote(n int, step v1alpha1.ProvisionStep, policy v1alpha1.RetryPolicy, insecure bool) []client.Object {
	key, p := newProvision("shop", fmt.Sprint("edge-", n))
	p.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Provision"}
	p.Spec = v1alpha1.ProvisionSpec{
		Target: v1alpha1.ProvisionTarget{KubeconfigSecret: &v1alpha1.KubeconfigSecret{Name: key.Name, Key: "kubeconfig"}},
		Steps:  []v1alpha1.ProvisionStep{step}, Policy: &policy,
	}
	trust := ""
	if insecure {
		trust = ", insecure-skip-tls-verify: true"
	}
	return []client.Object{
		p,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: key.Name}, Data: map[string][]byte{
			"kubeconfig": fmt.Appendf(nil, plainKubeconfig, "", "https://edge.example.com", trust, ""),
		}},
	}
}
