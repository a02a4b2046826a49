// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/grant"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
)

const (
	webUID  = "01234567-89ab-cdef-0123-456789abcdef"
	goneUID = "89abcdef-0123-4567-89ab-cdef01234567"
)

// proving is a Cluster whose load balancers are kubernetes and kubernetes-internal, with these
// objects besides the Service shop/web, which it serves, and namespaces: team may bind the
// load balancer kubernetes, shop nothing.
func proving(t *testing.T, pools ...*v1alpha1.BackendPool) *Offline {
	t.Helper()
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: webUID, Finalizers: []string{view.ServiceFinalizer}}}
	web.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("weir.dev/azure"), ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
	}
	objects := Objects{Services: []corev1.Service{*web}, Namespaces: []corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "team", Annotations: map[string]string{grant.Annotation: "kubernetes"}}},
	}}
	for _, p := range pools {
		objects.Pools = append(objects.Pools, *p)
	}
	settings := service.Settings{ClusterName: "kubernetes"}
	o := NewOffline(Options{SubscriptionID: "s0", ResourceGroup: "rg0"})
	o.Balance(rehearse.New(balancer.Config{Settings: balancer.Settings{
		Settings: settings, Place: lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0"}, Configurations: []service.Configuration{{Name: "kubernetes"}},
	}}, nil), services.Options{Class: "weir.dev/azure", Namespace: "weir-system", Settings: settings})
	if err := o.Fill(objects); err != nil {
		t.Fatal(err)
	}
	return o
}

// serves notes that Azure holds the Service shop/web.
func (o *Offline) serves() {
	o.own.Served = func(name, _ string) *servicelb.Served {
		if name != "shop/web" {
			return nil
		}
		return &servicelb.Served{On: o.own.Balancers.ID("kubernetes"), Pools: []service.Pool{{Name: "shop-web", Family: lb.IPv4}}}
	}
}

// webPool is the BackendPool that Weir makes for the Service shop/web.
func webPool(edits ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
	p := &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web.kubernetes", UID: "p",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: webUID, Controller: new(true)}},
		},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef: &v1alpha1.ServiceReference{Name: "web"}, IPFamily: "IPv4",
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: "kubernetes"}, PoolName: "shop-web",
		},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func nodesPool(edits ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
	return webPool(append([]func(*v1alpha1.BackendPool){func(p *v1alpha1.BackendPool) {
		p.Namespace, p.Name, p.OwnerReferences = "weir-system", "nodes.kubernetes", nil
		p.Spec.ServiceRef, p.Spec.Nodes, p.Spec.PoolName = nil, &v1alpha1.NodeMembers{}, "kubernetes"
	}}, edits...)...)
}

func recordedAs(uid string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Status.MadeFor = uid }
}

func onLoadBalancer(name, group string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) {
		p.Spec.LoadBalancer.Name, p.Spec.LoadBalancer.ResourceGroup = name, group
	}
}

func inNamespaceOf(namespace string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Namespace = namespace }
}

func withName(name string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Name = name }
}

func ofService(name string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: name} }
}

func withOwner(uid types.UID) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.OwnerReferences[0].UID = uid }
}

func ofPool(name string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Spec.PoolName = name }
}

func tookItsPool(p *v1alpha1.BackendPool) {
	p.Status.PoolID = "/subscriptions/s0/resourceGroups/rg0/providers/Microsoft.Network/loadBalancers/" + p.Spec.LoadBalancer.Name + "/backendAddressPools/" + p.Spec.PoolName
}

func labelled(p *v1alpha1.BackendPool) {
	p.Labels = map[string]string{view.ManagedBy: apiserver.FieldOwner}
}

// What counts as made by Weir, what holds a pool, and what of either somebody else may write.
func TestWhatWeirMade(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pool   *v1alpha1.BackendPool
		served bool
		made   bool
		right  backendpool.Right
		reason string
	}{
		{"to the letter, of a Service that Azure holds", webPool(), true, true, backendpool.Own, ""},
		{"to the letter, before Azure was asked", webPool(), false, false, backendpool.NoRight, v1alpha1.ReasonPending},
		{"the same, made by an earlier release that filled it", webPool(tookItsPool), false, true, backendpool.Own, ""},
		{"recorded", webPool(recordedAs(webUID)), false, true, backendpool.Own, ""},
		{"recorded, its label and owner edited", webPool(recordedAs(webUID), withOwner(goneUID)), false, true, backendpool.Own, ""},
		{"recorded for a Service that is gone", webPool(recordedAs(goneUID), withName("gone.kubernetes"), ofService("gone"), ofPool("shop-gone")), false, true, backendpool.Own, ""},
		{"recorded, and edited to name another Service", webPool(recordedAs(webUID), ofService("other")), true, false, backendpool.NoRight, v1alpha1.ReasonNotAllowed},
		{"a label", webPool(labelled, withOwner(goneUID), ofService("gone"), withName("gone.kubernetes")), true, false, backendpool.NoRight, v1alpha1.ReasonNotAllowed},
		{"of the same Service, in another's words", webPool(withName("mine"), withOwner("x")), true, false, backendpool.Own, ""},
		{"of the same Service, for another pool", webPool(withName("mine"), ofPool("shop-db")), true, false, backendpool.NoRight, v1alpha1.ReasonNotAllowed},
		{"a copy in another namespace", webPool(inNamespaceOf("team")), true, false, backendpool.NoRight, v1alpha1.ReasonDuplicate},
		{"a copy in a namespace that nobody knows", webPool(inNamespaceOf("new")), true, false, backendpool.NoRight, v1alpha1.ReasonPending},
		{"on a load balancer of somebody else", webPool(onLoadBalancer("terraform", "")), true, false, backendpool.NoRight, v1alpha1.ReasonNotAllowed},
		{"on one of the same name in another resource group", webPool(onLoadBalancer("kubernetes", "other")), true, false, backendpool.NoRight, v1alpha1.ReasonNotAllowed},
		{"a record there", webPool(onLoadBalancer("kubernetes", "other"), recordedAs(webUID)), true, false, backendpool.NoRight, v1alpha1.ReasonNotAllowed},
		{"allowed, of a pool that nobody needs", webPool(inNamespaceOf("team"), ofPool("team-db")), true, false, backendpool.Granted, ""},
		{"allowed, and it took the Service's pool", webPool(inNamespaceOf("team"), tookItsPool), true, false, backendpool.NoRight, v1alpha1.ReasonDuplicate},
		{"the same, being deleted", webPool(inNamespaceOf("team"), tookItsPool, deleting), true, false, backendpool.Granted, ""},
		{"of nodes, in Weir's namespace", nodesPool(), false, true, backendpool.Own, ""},
		{"of some nodes of the shared pool, in Weir's namespace", nodesPool(withName("mine")), false, false, backendpool.Granted, ""},
		{"of nodes, elsewhere", nodesPool(inNamespaceOf("team")), false, false, backendpool.NoRight, v1alpha1.ReasonDuplicate},
		{"of nodes, elsewhere, recorded", nodesPool(inNamespaceOf("team"), recordedAs(v1alpha1.MadeForNodes)), false, false, backendpool.NoRight, v1alpha1.ReasonDuplicate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := proving(t, tt.pool)
			if tt.served {
				o.serves()
			}
			at, err := o.snap.Target(tt.pool)
			if err != nil {
				t.Fatal(err)
			}
			has, not := o.own.Right(tt.pool, at)
			if made := o.own.Made(tt.pool); made != tt.made || has != tt.right || not.Reason != tt.reason {
				t.Errorf("made by Weir %v, right %d %s %q; want %v, %d %s", made, has, not.Reason, not.Why, tt.made, tt.right, tt.reason)
			}
		})
	}
}

// A Service that went while nobody watched is named by what Weir recorded on its BackendPool,
// which goes with it: not by an owner, whom anybody may write, nor if it is there after all.
func TestTheRecordOfAServiceThatIsGoneNamesIt(t *testing.T) {
	lost := func(edits ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
		return webPool(append([]func(*v1alpha1.BackendPool){deleting, withName("lost.kubernetes"), ofService("lost"), ofPool("shop-lost")}, edits...)...)
	}
	for _, tt := range []struct {
		name   string
		pool   *v1alpha1.BackendPool
		leaves bool
	}{
		{"recorded", lost(recordedAs(goneUID), withOwner(goneUID)), true},
		{"recorded, its owner edited", lost(recordedAs(goneUID), withOwner("x")), true},
		{"owned by a Service that never was, and labelled", lost(withOwner(goneUID), labelled), false},
		{"owned by one of another name", lost(withOwner(webUID)), false},
		{"recorded for one that is there, and edited", lost(recordedAs(webUID), withName("web.kubernetes")), false},
		{"recorded, on a load balancer of somebody else", lost(recordedAs(goneUID), onLoadBalancer("kubernetes", "other")), false},
		{"recorded, and another has its name now", webPool(deleting, recordedAs(goneUID)), false},
		{"recorded, of nodes", nodesPool(deleting, recordedAs(v1alpha1.MadeForNodes)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := proving(t, tt.pool)
			o.services.Goes(tt.pool)
			name := tt.pool.Namespace + "/lost"
			if uid, known := o.services.Known(name); known != tt.leaves || known && uid != goneUID {
				t.Errorf("%s leaves its load balancer: %v, want %v", name, known, tt.leaves)
			}
		})
	}
}

// What is on record as a Service's pool is what Weir filled; a BackendPool that somebody wrote
// before does not make a pool of others the Service's.
func TestHeldPools(t *testing.T) {
	noneForeign := func(p *v1alpha1.BackendPool) { p.Status.Foreign = new(int32(0)) }
	someForeign := func(p *v1alpha1.BackendPool) { p.Status.Foreign = new(int32(1)) }
	for _, tt := range []struct {
		name string
		pool *v1alpha1.BackendPool
		held bool
		made bool
	}{
		{"recorded", webPool(recordedAs(webUID)), true, true},
		{"filled", webPool(tookItsPool), true, true},
		{"only written", webPool(), false, false},
		{"somebody else's, with what he put there alone", webPool(inNamespaceOf("team"), tookItsPool, noneForeign), true, false},
		{"somebody else's, and others'", webPool(inNamespaceOf("team"), tookItsPool, someForeign), false, false},
		{"somebody else's, never seen", webPool(inNamespaceOf("team"), noneForeign), false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := proving(t, tt.pool)
			s := view.Get[corev1.Service](o.snap.Services, "shop/web")
			on := []lb.LoadBalancerID{o.own.Balancers.ID("kubernetes")}
			got, made := o.own.Held(s, []string{"shop-web", "shop-web-ipv6"}, on)
			if (len(got) == 1) != tt.held || (len(made) == 1) != tt.made {
				t.Errorf("held: %v, want %v; made: %v, want %v", got, tt.held, made, tt.made)
			}
		})
	}
}
