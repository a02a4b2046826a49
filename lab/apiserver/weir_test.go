// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"weir.dev/weir/config/crd"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
)

func newServer(t testing.TB) *Server {
	t.Helper()
	s := New(Options{Seed: 1})
	t.Cleanup(s.Close)
	body, err := crd.Files.ReadFile("weir.dev_backendpools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Install(body); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestManagerListsAndWatchesInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(t.Output(), nil)))
		mgr, err := ctrl.NewManager(s.RESTConfig("weir"), ctrl.Options{
			Scheme: metadata.Scheme(), Cache: cache.Options(nil), Logger: logr.FromSlogHandler(slog.NewTextHandler(t.Output(), nil)),
			Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cluster, err := controllers.New(ctx, mgr, controllers.Options{SubscriptionID: "s", ResourceGroup: "rg"})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- mgr.Start(ctx) }()
		time.Sleep(time.Second)
		if err := cluster.Synced(nil); err != nil {
			t.Error(err)
		}
		if err := mgr.GetClient().Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour) // watches expire and restart
		svc := &corev1.Service{}
		if err := mgr.GetClient().Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, svc); err != nil {
			t.Fatal(err)
		}
		if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
			t.Errorf("the cache has %v", svc.Spec)
		}
		for _, r := range s.Log() {
			if r.Verb == "list" {
				t.Errorf("%s: watches begin with what there is", r)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
