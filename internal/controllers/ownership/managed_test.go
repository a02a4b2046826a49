// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/ownership"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/objects"
)

type managedLoadBalancers []string

func (b managedLoadBalancers) LeftToOthers(lb.PoolKey) bool { return false }
func (b managedLoadBalancers) Names() []string              { return b }
func (managedLoadBalancers) ID(name string) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: name}
}

// Of the namespaces, team may bind pools of kubernetes, and shop none.
func newPools(t *testing.T, pools ...client.Object) *ownership.Pools {
	t.Helper()
	web := objects.NewService(corev1.ServiceTypeLoadBalancer)
	web.UID, web.Finalizers, web.Spec.ExternalTrafficPolicy = objects.WebUID, []string{metadata.ServiceFinalizer}, corev1.ServiceExternalTrafficPolicyLocal
	seen := &cache.Snapshot{Placement: cache.Placement{SubscriptionID: "s0", ResourceGroup: "rg0"}, Serving: cache.Serving{LoadBalancers: true}}
	seen.InMemory()
	if err := seen.Add(append(pools, web,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops", Annotations: map[string]string{service.LoadBalancersAnnotation: "terraform"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Annotations: map[string]string{service.LoadBalancersAnnotation: "kubernetes"}}})...); err != nil {
		t.Fatal(err)
	}
	return &ownership.Pools{
		View: seen, Statuses: backendpool.NewStatuses(nil), LoadBalancers: managedLoadBalancers{"kubernetes", "kubernetes-internal"},
		Namespace: "weir-system", Settings: service.Settings{ClusterName: "kubernetes", SeveralLoadBalancers: true},
		ObservedState: func(string, string) *servicelb.ObservedPools { return nil },
	}
}

func setObserved(o *ownership.Pools) {
	o.ObservedState = func(name, _ string) *servicelb.ObservedPools {
		if name != "shop/web" {
			return nil
		}
		return &servicelb.ObservedPools{On: o.LoadBalancers.ID("kubernetes"), Pools: []service.Pool{{Name: "shop-web", Family: lb.IPv4}}}
	}
}

func labelled(p *v1alpha1.BackendPool) {
	p.Labels = map[string]string{metadata.ManagedBy: k8s.FieldOwner}
}

func joinAs(membership string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Spec.Membership = membership }
}

// Which BackendPools count as created by Weir or as owners, and which of their fields tenants may
// write.
func TestCreatedPools(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pool   *v1alpha1.BackendPool
		served bool
		made   bool
		right  backendpool.Permission
		reason string
	}{
		{"to the letter, of a Service that Azure holds", objects.ManagedPool(), true, true, backendpool.Managed, ""},
		{"to the letter, before Azure was asked", objects.ManagedPool(), false, false, backendpool.NoPermission, v1alpha1.ReasonPending},
		{"the same, made by an earlier release that filled it", objects.ManagedPool(objects.WithAzurePool), false, true, backendpool.Managed, ""},
		{"recorded", objects.ManagedPool(objects.RecordedAs(objects.WebUID)), false, true, backendpool.Managed, ""},
		{"recorded, its label and owner edited", objects.ManagedPool(objects.RecordedAs(objects.WebUID), objects.OwnedBy(objects.DeletedUID)), false, true, backendpool.Managed, ""},
		{"recorded for a Service that is gone", objects.ManagedPool(objects.RecordedAs(objects.DeletedUID), objects.WithName("gone.kubernetes"), objects.OfService("gone"), objects.OfPool("shop-gone")), false, true, backendpool.Managed, ""},
		{"recorded, and edited to name another Service", objects.ManagedPool(objects.RecordedAs(objects.WebUID), objects.OfService("other")), true, false, backendpool.NoPermission, v1alpha1.ReasonNotAllowed},
		{"a label", objects.ManagedPool(labelled, objects.OwnedBy(objects.DeletedUID), objects.OfService("gone"), objects.WithName("gone.kubernetes")), true, false, backendpool.NoPermission, v1alpha1.ReasonNotAllowed},
		{"of the same Service, in another's words", objects.ManagedPool(objects.WithName("mine"), objects.OwnedBy("x")), true, false, backendpool.Managed, ""},
		{"of the same Service, for another pool", objects.ManagedPool(objects.WithName("mine"), objects.OfPool("shop-db")), true, false, backendpool.NoPermission, v1alpha1.ReasonNotAllowed},
		{"a copy in another namespace", objects.ManagedPool(objects.InNamespace("team")), true, false, backendpool.NoPermission, v1alpha1.ReasonDuplicate},
		{"a copy in a namespace that nobody knows", objects.ManagedPool(objects.InNamespace("new")), true, false, backendpool.NoPermission, v1alpha1.ReasonPending},
		{"on a load balancer of another owner", objects.ManagedPool(objects.OnLoadBalancer("terraform", "")), true, false, backendpool.NoPermission, v1alpha1.ReasonNotAllowed},
		{"on one of the same name in another resource group", objects.ManagedPool(objects.OnLoadBalancer("kubernetes", "other")), true, false, backendpool.NoPermission, v1alpha1.ReasonNotAllowed},
		{"a record there", objects.ManagedPool(objects.OnLoadBalancer("kubernetes", "other"), objects.RecordedAs(objects.WebUID)), true, false, backendpool.NoPermission, v1alpha1.ReasonNotAllowed},
		{"allowed, of a pool that nobody needs", objects.ManagedPool(objects.InNamespace("team"), objects.OfPool("team-db")), true, false, backendpool.Granted, ""},
		{"the same, of interfaces", objects.ManagedPool(objects.InNamespace("team"), objects.OfPool("team-db"), joinAs(v1alpha1.MembershipNetworkInterface)), true, false, backendpool.Granted, ""},
		{"allowed, of interfaces, and not on the cluster's", objects.ManagedPool(objects.InNamespace("ops"), objects.OnLoadBalancer("terraform", ""), joinAs(v1alpha1.MembershipNetworkInterface)), true, false, backendpool.NoPermission, v1alpha1.ReasonNotAllowed},
		{"the same, of addresses", objects.ManagedPool(objects.InNamespace("ops"), objects.OnLoadBalancer("terraform", "")), true, false, backendpool.Granted, ""},
		{"allowed, and it took the Service's pool", objects.ManagedPool(objects.InNamespace("team"), objects.WithAzurePool), true, false, backendpool.NoPermission, v1alpha1.ReasonDuplicate},
		{"the same, being deleted", objects.ManagedPool(objects.InNamespace("team"), objects.WithAzurePool, objects.WithDeletion), true, false, backendpool.Granted, ""},
		{"of nodes, in Weir's namespace", objects.ManagedNodePool(), false, true, backendpool.Managed, ""},
		{"of nodes, as addresses", objects.ManagedNodePool(joinAs(v1alpha1.MembershipAddress)), false, true, backendpool.Managed, ""},
		{"of nodes, as Weir has it", objects.ManagedNodePool(joinAs(v1alpha1.MembershipAuto)), false, true, backendpool.Managed, ""},
		{"of nodes, as interfaces, which azure.json leaves open", objects.ManagedNodePool(joinAs(v1alpha1.MembershipNetworkInterface)), false, true, backendpool.Managed, ""},
		{"of some nodes of the shared pool, in Weir's namespace", objects.ManagedNodePool(objects.WithName("mine")), false, false, backendpool.Granted, ""},
		{"of nodes, elsewhere", objects.ManagedNodePool(objects.InNamespace("team")), false, false, backendpool.NoPermission, v1alpha1.ReasonDuplicate},
		{"of nodes, elsewhere, recorded", objects.ManagedNodePool(objects.InNamespace("team"), objects.RecordedAs(v1alpha1.MadeForNodes)), false, false, backendpool.NoPermission, v1alpha1.ReasonDuplicate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newPools(t, tt.pool)
			if tt.served {
				setObserved(o)
			}
			at, err := o.View.Target(tt.pool)
			if err != nil {
				t.Fatal(err)
			}
			permission, not := o.Permission(tt.pool, at)
			if created := o.IsCreatedByWeir(tt.pool); created != tt.made || permission != tt.right || not.Reason != tt.reason {
				t.Errorf("made by Weir %v, right %d %s %q; want %v, %d %s", created, permission, not.Reason, not.Message, tt.made, tt.right, tt.reason)
			}
		})
	}
}

// A BackendPool created before the Service cannot claim a foreign pool.
func TestHeldPools(t *testing.T) {
	noneForeign := func(p *v1alpha1.BackendPool) { p.Status.Foreign = new(int32(0)) }
	someForeign := func(p *v1alpha1.BackendPool) { p.Status.Foreign = new(int32(1)) }
	for _, tt := range []struct {
		name string
		pool *v1alpha1.BackendPool
		held bool
		made bool
	}{
		{"recorded", objects.ManagedPool(objects.RecordedAs(objects.WebUID)), true, true},
		{"filled", objects.ManagedPool(objects.WithAzurePool), true, true},
		{"only written", objects.ManagedPool(), false, false},
		{"another owner's, with what he put there alone", objects.ManagedPool(objects.InNamespace("team"), objects.WithAzurePool, noneForeign), true, false},
		{"another owner's, and others'", objects.ManagedPool(objects.InNamespace("team"), objects.WithAzurePool, someForeign), false, false},
		{"another owner's, never seen", objects.ManagedPool(objects.InNamespace("team"), noneForeign), false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newPools(t, tt.pool)
			s := cache.Get[corev1.Service](o.View.Services, "shop/web")
			on := []lb.LoadBalancerID{o.LoadBalancers.ID("kubernetes")}
			got, created := o.RecordedPools(s, []string{"shop-web", "shop-web-ipv6"}, on)
			if (len(got) == 1) != tt.held || (len(created) == 1) != tt.made {
				t.Errorf("held: %v, want %v; made: %v, want %v", got, tt.held, created, tt.made)
			}
		})
	}
}

// A BackendPool with an edited membership type is not Weir's.
func TestHowNodesBecomeMembers(t *testing.T) {
	for _, interfaces := range []bool{false, true} {
		o := newPools(t)
		o.Settings.Interfaces, o.Settings.ConvertsPools = interfaces, true
		shall := o.NewBackendPool(nil, o.LoadBalancers.ID("kubernetes"), service.Pool{Name: "kubernetes", Family: lb.IPv4, Shared: true, Interfaces: interfaces})
		want := map[bool]string{false: "", true: v1alpha1.MembershipNetworkInterface}[interfaces]
		if shall.Spec.Membership != want {
			t.Errorf("interfaces %v: they become members by %q", interfaces, shall.Spec.Membership)
		}
		for current, same := range map[string]bool{
			"": true, v1alpha1.MembershipAuto: true, v1alpha1.MembershipAddress: !interfaces, v1alpha1.MembershipNetworkInterface: interfaces,
		} {
			if p := objects.ManagedNodePool(joinAs(current)); ownership.HasSameSpec(p, shall) != same {
				t.Errorf("interfaces %v: %q says the same: %v", interfaces, current, !same)
			}
			asks := current == v1alpha1.MembershipNetworkInterface
			leaves := current == v1alpha1.MembershipAuto // without membership it has addresses
			if got := o.UsesInterfaces(objects.ManagedNodePool(objects.RecordedAs(v1alpha1.MadeForNodes), joinAs(current))); got != (asks || leaves && interfaces) {
				t.Errorf("interfaces %v: Weir's own with %q is by machine: %v", interfaces, current, got)
			}
			if got := o.UsesInterfaces(objects.ManagedNodePool(objects.InNamespace("team"), joinAs(current))); got != asks {
				t.Errorf("interfaces %v: a pool of a user with %q is by machine: %v", interfaces, current, got)
			}
		}
	}
}
