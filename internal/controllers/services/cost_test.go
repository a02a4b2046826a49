// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/offline"
	"weir.dev/weir/internal/service"
)

// newLargeCluster is a cluster with 5,000 nodes, the Kubernetes limit.
func newLargeCluster(tb testing.TB) *services.Reconciler {
	tb.Helper()
	var objects []client.Object
	for i := range 5000 {
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String()},
			}},
		})
	}
	r := offline.New(controllers.Options{}).Controllers
	r.View.InMemory()
	if err := r.View.Add(objects...); err != nil {
		tb.Fatal(err)
	}
	r.Services.EnableLoadBalancers(nil, services.Options{Settings: service.Settings{ClusterName: "kubernetes", SeveralLoadBalancers: true}})
	return r.Services
}

func BenchmarkNodesOf(b *testing.B) {
	r := newLargeCluster(b)
	for b.Loop() {
		r.NodesOf(lb.LoadBalancerID{Name: "kubernetes"}, false)
	}
}

// NodesOf is linear in the number of nodes.
func TestAllNodesAreFound(t *testing.T) {
	r, done := newLargeCluster(t), make(chan struct{})
	go func() {
		defer close(done)
		for range 10 {
			if nodes, ok := r.NodesOf(lb.LoadBalancerID{Name: "kubernetes"}, false); !ok || len(nodes) != 5000 {
				t.Errorf("%d nodes", len(nodes))
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("no end")
	}
}
