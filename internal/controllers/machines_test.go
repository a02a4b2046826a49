// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/objects"
)

type managedLoadBalancers struct{ services.Balancers }

func (managedLoadBalancers) LeftToOthers(lb.PoolKey) bool { return false }
func (managedLoadBalancers) Names() []string              { return []string{"Kubernetes", "Kubernetes-internal"} }
func (managedLoadBalancers) ID(name string) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: name}
}

// newMachineCluster is a cluster without an API server and one node of each kind.
func newMachineCluster(t *testing.T, interfaces bool, several []service.Configuration, pools ...*v1alpha1.BackendPool) *Controllers {
	t.Helper()
	const group = "azure:///subscriptions/S0/resourceGroups/rg0/providers/Microsoft.Compute/"
	r := NewControllers(Options{SubscriptionID: "s0", ResourceGroup: "rg0", Log: slog.New(slog.DiscardHandler)}, k8s.NewEventQueue(metadata.Scheme(), nil, nil), nil, services.API{})
	r.EnableLoadBalancers(managedLoadBalancers{}, services.Options{Namespace: "weir-system", Configurations: several, Settings: service.Settings{ClusterName: "kubernetes", Interfaces: interfaces, ConvertsPools: true, SeveralLoadBalancers: true}})
	r.View.InMemory()
	items := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system"}}}
	for n, id := range []string{group + "virtualMachineScaleSets/Blue/virtualMachines/0", group + "virtualMachines/Alone", "", "kind://docker/kind/n4", group + "virtualMachineScaleSets/blue/virtualMachines/7"} {
		node := objects.NewNode(n + 1)
		node.Spec.ProviderID, node.Labels = id, map[string]string{metadata.PlaceLabel: []string{"kubernetes", "lb-2", "lb-2", "lb-2", ""}[n]}
		if n == 0 {
			node.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "true"
		}
		items = append(items, node)
	}
	for _, p := range pools {
		items = append(items, p)
	}
	if err := r.View.Add(items...); err != nil {
		t.Fatal(err)
	}
	for _, p := range pools {
		r.Ownership.Statuses.AdoptPool(p)
	}
	return r
}

func joinAs(membership string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Spec.Membership = membership }
}

// Excluded nodes are included, because they have to leave. Nodes without a machine ID are skipped.
func TestMachinesOfNodes(t *testing.T) {
	weirs := objects.ManagedNodePool(objects.RecordedAs(v1alpha1.MadeForNodes), joinAs(v1alpha1.MembershipNetworkInterface))
	foreign := objects.ManagedNodePool(objects.WithName("mine"), objects.OnLoadBalancer("apps", ""), joinAs(v1alpha1.MembershipNetworkInterface))
	several := []service.Configuration{{Name: "kubernetes"}, {Name: "lb-2"}}
	for _, tt := range []struct {
		about   string
		several []service.Configuration
		pools   []*v1alpha1.BackendPool
		on      [3]string
	}{
		{"several load balancers", several, nil, [3]string{"lb-2", "kubernetes", ""}},
		{"one, which has no pool yet", nil, nil, [3]string{}},
		{"one", nil, []*v1alpha1.BackendPool{weirs}, [3]string{"kubernetes", "kubernetes", "kubernetes"}},
		{"one, and somebody binds another", nil, []*v1alpha1.BackendPool{foreign, weirs}, [3]string{"kubernetes", "kubernetes", "kubernetes"}},
		{"somebody binds another alone", nil, []*v1alpha1.BackendPool{foreign}, [3]string{}},
	} {
		r := newMachineCluster(t, true, tt.several, tt.pools...)
		got := map[string]string{}
		for _, n := range r.Machines() {
			got[n.Machine.String()] = n.Configuration
		}
		want := map[string]string{"virtual machine Alone": tt.on[0], "instance 0 of scale set Blue": tt.on[1], "instance 7 of scale set blue": tt.on[2]}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", tt.about, got, want)
		}
	}
}

// With several load balancers, a node joins network interface pools of its own one only. Address
// pools take any node, and unplaced nodes join all.
func TestNodesOfAnotherLoadBalancer(t *testing.T) {
	several := []service.Configuration{{Name: "kubernetes"}, {Name: "lb-2"}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "weir-system", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for n := range 5 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.9.0.1"}, NodeName: new(objects.NewNode(n + 1).Name)})
	}
	for _, tt := range []struct {
		about        string
		several      []service.Configuration
		edits        []func(*v1alpha1.BackendPool)
		want, absent string
	}{
		{"the first's", several, []func(*v1alpha1.BackendPool){objects.OnLoadBalancer("kubernetes", "")}, "n5", "n1 n2 n3 n4"},
		{"the first's internal twin", several, []func(*v1alpha1.BackendPool){objects.OnLoadBalancer("kubernetes-internal", "")}, "n5", "n1 n2 n3 n4"},
		{"the second's", several, []func(*v1alpha1.BackendPool){objects.OnLoadBalancer("lb-2", "")}, "n2 n5", "n1 n3 n4"},
		{"of addresses", several, []func(*v1alpha1.BackendPool){objects.OnLoadBalancer("kubernetes", ""), joinAs(v1alpha1.MembershipAddress)}, "n2 n3 n4 n5", "n1"},
		{"one load balancer alone", nil, []func(*v1alpha1.BackendPool){objects.OnLoadBalancer("kubernetes", "")}, "n2 n5", "n1 n3 n4"},
		{"one load balancer alone, of addresses", nil, []func(*v1alpha1.BackendPool){objects.OnLoadBalancer("kubernetes", ""), joinAs(v1alpha1.MembershipAddress)}, "n2 n3 n4 n5", "n1"},
		{"of a Service's endpoints", several, []func(*v1alpha1.BackendPool){objects.OnLoadBalancer("kubernetes", ""), objects.OfService("web"), func(p *v1alpha1.BackendPool) { p.Spec.Nodes = nil }}, "n5", "n1 n2 n3 n4"},
	} {
		edits := append([]func(*v1alpha1.BackendPool){objects.WithName("mine"), objects.InNamespace("weir-system"), joinAs(v1alpha1.MembershipNetworkInterface)}, tt.edits...)
		p := objects.ManagedNodePool(edits...)
		r := newMachineCluster(t, true, tt.several, p)
		if err := r.View.Add(slice); err != nil {
			t.Fatal(err)
		}
		set, err := r.View.Members(p)
		if err != nil {
			t.Fatal(err)
		}
		var in, absent []string
		for _, a := range set.Addresses {
			in = append(in, a.Name)
		}
		for _, a := range set.NonMembers {
			absent = append(absent, a.Node)
			placed, none := "its network interface is in the pools of load balancer lb-2", map[string]string{
				"n3": "it has no spec.providerID, so its machine is not known: the cloud provider has to set it",
				"n4": `its spec.providerID "kind://docker/kind/n4" names no virtual machine of Azure`,
			}
			if a.Node != "n1" && a.Reason != placed && a.Reason != none[a.Node] {
				t.Errorf("%s: %s", tt.about, a)
			}
		}
		if strings.Join(in, " ") != tt.want || strings.Join(absent, " ") != tt.absent {
			t.Errorf("%s: %v, and not %v; want %q, and not %q", tt.about, in, absent, tt.want, tt.absent)
		}
	}
}

// The security group admits traffic to every node that may be in the pool, including a recreated
// one without a machine ID.
func TestNodesOfASecurityGroup(t *testing.T) {
	r := newMachineCluster(t, true, nil, objects.ManagedNodePool(objects.RecordedAs(v1alpha1.MadeForNodes), joinAs(v1alpha1.MembershipNetworkInterface)))
	if ips, known := r.Services.NodesOf(managedLoadBalancers{}.ID("kubernetes"), false); !known || fmt.Sprint(ips) != "[10.0.0.2 10.0.0.3 10.0.0.5]" {
		t.Errorf("%v, known: %t", ips, known)
	}
}

func TestPoolsOfNetworkInterfaces(t *testing.T) {
	made := objects.RecordedAs(v1alpha1.MadeForNodes)
	as := v1alpha1.MembershipNetworkInterface
	paused := func(p *v1alpha1.BackendPool) { p.Spec.Paused = true }
	for _, tt := range []struct {
		about      string
		interfaces bool
		pool       *v1alpha1.BackendPool
		want       string
	}{
		{"Weir's", true, objects.ManagedNodePool(made, joinAs(as)), "kubernetes/kubernetes"},
		{"one that goes, with members", true, objects.ManagedNodePool(made, joinAs(as), objects.WithAzurePool, objects.WithDeletion), "kubernetes/kubernetes"},
		{"one that goes, without", true, objects.ManagedNodePool(made, joinAs(as), objects.WithDeletion), ""},
		{"one that leaves it open", true, objects.ManagedNodePool(made, joinAs(v1alpha1.MembershipAuto)), "kubernetes/kubernetes"},
		{"one from before the pools were converted", true, objects.ManagedNodePool(made), ""},
		{"one that leaves it open, where pools hold addresses", false, objects.ManagedNodePool(made), ""},
		{"somebody's that leaves it to Weir", true, objects.ManagedNodePool(objects.WithName("mine"), objects.OnLoadBalancer("apps", ""), joinAs(v1alpha1.MembershipAuto)), ""},
		{"somebody's on a load balancer of another owner's", true, objects.ManagedNodePool(objects.WithName("mine"), objects.OnLoadBalancer("apps", ""), joinAs(as)), ""},
		{"one of addresses", true, objects.ManagedNodePool(objects.WithName("mine"), objects.OnLoadBalancer("apps", ""), joinAs(v1alpha1.MembershipAddress)), ""},
		{"paused", true, objects.ManagedNodePool(made, joinAs(as), paused), ""},
	} {
		var got []string
		for _, id := range newMachineCluster(t, tt.interfaces, nil, tt.pool).InterfacePools() {
			got = append(got, id.LoadBalancer.Name+"/"+id.Name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v, want %q", tt.about, got, tt.want)
		}
	}
}

// Two nodes on two load balancers have one machine, or one address: one of them counts, in pools of either kind, and a
// change of either has the pools of both looked at.
func TestDuplicatesOnTwoLoadBalancers(t *testing.T) {
	several := []service.Configuration{{Name: "lb-2"}, {Name: "kubernetes"}}
	onLoadBalancer := func(name, membership string) *v1alpha1.BackendPool {
		p := objects.ManagedNodePool(objects.WithName("nodes."+name), objects.OnLoadBalancer(name, ""), objects.RecordedAs(v1alpha1.MadeForNodes), joinAs(membership))
		p.Spec.Nodes.Selector = cache.NodesOn(name, several)
		return p
	}
	for _, tt := range []struct {
		about             string
		interfaces, apart bool // apart are they in what the pools hold
		first, second     string
	}{
		{"one machine", true, false, "n8", ""},
		{"one address", false, false, "n8", ""},
		{"one machine, pools of addresses", false, true, "n8", "n9"},
		{"one address, pools of interfaces", true, true, "n8", "n9"},
	} {
		kind := map[bool]string{true: v1alpha1.MembershipNetworkInterface, false: v1alpha1.MembershipAddress}[tt.interfaces]
		pools := []*v1alpha1.BackendPool{onLoadBalancer("lb-2", kind), onLoadBalancer("kubernetes", kind)}
		r := newMachineCluster(t, tt.interfaces, several)
		for _, p := range pools {
			if err := r.View.Add(p); err != nil {
				t.Fatal(err)
			}
			r.Ownership.Statuses.AdoptPool(p)
		}
		sharesMachine := tt.interfaces != tt.apart
		for i, place := range []string{"lb-2", "kubernetes"} {
			n := objects.NewNode(8 + i)
			n.Labels = map[string]string{metadata.PlaceLabel: place}
			machine := 8 + i
			if sharesMachine {
				machine = 8
			} else {
				n.Status.Addresses = objects.NewNode(8).Status.Addresses
			}
			n.Spec.ProviderID = fmt.Sprintf("azure:///subscriptions/s0/resourceGroups/rg0/providers/Microsoft.Compute/virtualMachines/m%d", machine)
			if err := r.View.Add(n); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []string{tt.first, tt.second} {
			set, err := r.View.Members(pools[i])
			if err != nil {
				t.Fatal(err)
			}
			var in []string
			for _, a := range set.Addresses {
				if a.Name == "n8" || a.Name == "n9" {
					in = append(in, a.Name)
				}
			}
			if got := strings.Join(in, " "); got != want {
				t.Errorf("%s: on %s %q, want %q", tt.about, several[i].Name, got, want)
			}
		}
		on := map[string][]string{}
		for _, n := range r.Machines() {
			on[n.Machine.String()] = append(on[n.Machine.String()], n.Configuration)
		}
		if got := on["virtual machine m8"]; len(got) != 1 || got[0] != "lb-2" {
			t.Errorf("%s: machine m8 is on %v", tt.about, got)
		}
	}
}
