// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/objects"
)

// Rules use a pool that has nine tenths of its members, and never one that is being emptied.
func TestFilledPools(t *testing.T) {
	made := objects.RecordedAs(v1alpha1.MadeForNodes)
	paused := func(p *v1alpha1.BackendPool) { p.Spec.Paused = true }
	unreadable := func(p *v1alpha1.BackendPool) {
		p.Spec.Nodes.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
	}
	unusable := func(p *v1alpha1.BackendPool) {
		p.Status.Unusable = []v1alpha1.UnusableNode{{Node: "n3", Address: "10.0.0.3", Reason: "Azure has no virtual machine n3"}}
	}
	none := func(p *v1alpha1.BackendPool) { p.Spec.Nodes.Selector = cache.SelectNone() }
	for _, row := range []struct {
		name              string
		nodes, in, others int
		nic               bool
		holder            *v1alpha1.BackendPool
		waits             bool
	}{
		{"all", 3, 3, 0, false, nil, false},
		{"two of three", 3, 2, 0, false, nil, true},
		{"two of three, and a stranger", 3, 2, 1, false, nil, true},
		{"nine of ten", 10, 9, 0, false, nil, false},
		{"eight of ten", 10, 8, 0, false, nil, true},
		{"interfaces, all", 3, 3, 0, true, nil, false},
		{"interfaces, nine of ten", 10, 9, 0, true, nil, false},
		{"interfaces, eight of ten", 10, 8, 0, true, nil, true},
		{"interfaces, two of three, and the third cannot join", 3, 2, 0, true, objects.ManagedNodePool(made, unusable), false},
		{"interfaces, one of three, and another cannot join", 3, 1, 0, true, objects.ManagedNodePool(made, unusable), true},
		{"all, by its BackendPool", 3, 3, 0, false, objects.ManagedNodePool(made), false},
		{"all, and they are taken out", 3, 3, 0, false, objects.ManagedNodePool(made, objects.WithAzurePool, objects.WithDeletion), true},
		{"all, and they are to be taken out", 3, 3, 0, false, objects.ManagedNodePool(made, none), true},
		{"one, and it stays as it is", 3, 1, 0, false, objects.ManagedNodePool(made, paused), false},
		{"none, and it stays as it is", 3, 0, 0, false, objects.ManagedNodePool(made, paused), true},
		{"none, of no nodes", 0, 0, 0, false, nil, false},
		{"all, and nobody can tell who is to be in it", 3, 3, 0, false, objects.ManagedNodePool(made, unreadable), true},
		{"one, nobody can tell, and it stays as it is", 3, 1, 0, false, objects.ManagedNodePool(made, unreadable, paused), true},
	} {
		var pools []*v1alpha1.BackendPool
		if row.holder != nil {
			pools = append(pools, row.holder)
		}
		r := newHoldingCluster(t, pools...)
		if row.holder != nil {
			r.Ownership.Statuses.AdoptPool(row.holder)
		}
		pool := lb.Pool{NIC: row.nic}
		for n := range row.nodes {
			node := objects.NewNode(n + 1)
			node.Spec.ProviderID = "azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/" + node.Name
			if err := r.View.Add(node); err != nil {
				t.Fatal(err)
			}
			if n < row.in {
				a := lb.Address{IP: cache.InternalIPs(node)[0]}
				if row.nic {
					a = lb.Address{Name: node.Name}
				}
				pool.Addresses = append(pool.Addresses, a)
			}
		}
		for n := range row.others {
			pool.Addresses = append(pool.Addresses, lb.Address{IP: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})})
		}
		shared := service.Pool{Name: "kubernetes", Family: lb.IPv4, Shared: true, Interfaces: row.nic}
		if got := r.Services.NeedsMembers("shop/web", r.Ownership.LoadBalancers.ID("kubernetes"), shared, pool); got != row.waits {
			t.Errorf("%s: waited for: %t, want %t", row.name, got, row.waits)
		}
	}
}

// A pool being converted is emptied once no rule uses it, even if Services need it: its BackendPool selects
// no node and is deleted. A pool filled by another controller first gets a BackendPool.
func TestAPoolOfTheOtherKindIsEmptied(t *testing.T) {
	inRG := func(p *v1alpha1.BackendPool) {
		p.Status.PoolID = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/kubernetes"
	}
	home, made := objects.InNamespace("default"), objects.RecordedAs(v1alpha1.MadeForNodes)
	joined := func(p *v1alpha1.BackendPool) { p.Spec.Membership = v1alpha1.MembershipNetworkInterface }
	for _, tt := range []struct {
		about             string
		pool              *v1alpha1.BackendPool
		rules, interfaces int
		want              string
	}{
		{"taken", objects.ManagedNodePool(home, made, inRG, joined), 0, 2, "goes, selects nobody: true"},
		{"a rule names it", objects.ManagedNodePool(home, made, inRG, joined), 1, 2, "stays, selects nobody: false"},
		{"about to take it", objects.ManagedNodePool(home, made, joined), 0, 2, "stays, selects nobody: false"},
		{"its pool is gone", objects.ManagedNodePool(home, made), 0, 0, "goes, selects nobody: true"},
		{"none, and another controller has made them members", nil, 0, 2, "stays, selects nobody: true"},
		{"none, and no members", nil, 0, 0, "none"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, 1)
				w.converts, w.interfaces = true, tt.interfaces == 0
				w.enableClass(services.Options{})
				w.emptying = []plan.DrainingPool{{Pool: lb.PoolID{LoadBalancer: w.ID("kubernetes"), Name: "kubernetes"}, Interfaces: tt.interfaces, Rules: tt.rules, Interim: "kubernetes_addresses"}}
				if tt.pool != nil {
					if err := w.kube.View.Add(tt.pool); err != nil {
						t.Fatal(err)
					}
					w.kube.Ownership.Statuses.AdoptPool(tt.pool)
				}
				w.editService(0, func(s *corev1.Service) { s.Spec.Ports[0].Port++ })
				w.advanceTime(20 * time.Second)
				got := "none"
				if pool := w.kube.View.Pool("default", "nodes.kubernetes"); pool != nil {
					does := map[bool]string{true: "goes", false: "stays"}[pool.DeletionTimestamp != nil]
					got = fmt.Sprintf("%s, selects nobody: %t", does, cache.SelectsNoNodes(pool))
				}
				if got != tt.want {
					t.Errorf("the BackendPool of nodes: %s, want %s", got, tt.want)
				}
			})
		})
	}
}
