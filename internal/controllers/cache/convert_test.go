// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/test/objects"
)

var (
	bp   = objects.NewBackendPool
	took = objects.WithAzurePool
)

// A BackendPool keeps a taken pool when the defaults change.
func TestPlacement(t *testing.T) {
	moved := Placement{SubscriptionID: "s9", ResourceGroup: "rg9"}
	elsewhere := func(p *v1alpha1.BackendPool) { took(p); p.Spec.PoolName = "other" }
	for _, tt := range []struct {
		name string
		pool *v1alpha1.BackendPool
		want string
	}{
		{"defaults", bp("a", 0), "s9/rg9/lb/web"},
		{"named", bp("a", 0, func(p *v1alpha1.BackendPool) {
			p.Spec.LoadBalancer.SubscriptionID, p.Spec.LoadBalancer.ResourceGroup = "s1", "rg1"
		}), "s1/rg1/lb/web"},
		{"taken under other defaults", bp("a", 0, took), "s0/rg0/lb/web"},
		{"a status that speaks of another pool", bp("a", 0, elsewhere), "s9/rg9/lb/other"},
		{"a status that is no id", bp("a", 0, func(p *v1alpha1.BackendPool) { p.Status.PoolID = "/a/../b" }), "s9/rg9/lb/web"},
	} {
		id, err := moved.PoolOf(tt.pool)
		got := fmt.Sprintf("%s/%s/%s/%s", id.LoadBalancer.SubscriptionID, id.LoadBalancer.ResourceGroup, id.LoadBalancer.Name, id.Name)
		if err != nil || got != tt.want {
			t.Errorf("%s: %s %v, want %s", tt.name, got, err, tt.want)
		}
	}
	if _, err := (Placement{SubscriptionID: "s"}).PoolOf(bp("a", 0)); err == nil || !strings.Contains(err.Error(), "resource group") {
		t.Errorf("no resource group anywhere: %v", err)
	}
}

func TestNilConditions(t *testing.T) {
	yes, no := new(true), new(false)
	es := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{
		{NodeName: new("n"), Conditions: discoveryv1.EndpointConditions{}},
		{Conditions: discoveryv1.EndpointConditions{Ready: no}},
		{Conditions: discoveryv1.EndpointConditions{Ready: no, Serving: yes, Terminating: yes}},
	}}
	want := []membership.Endpoint{{Node: "n", Ready: true, Serving: true}, {}, {Serving: true, Terminating: true}}
	if got := SliceOf(es); got.Family != lb.IPv4 || !slices.Equal(got.Endpoints, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := SliceOf(&discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeFQDN}).Family; got != "" {
		t.Errorf("FQDN has family %q", got)
	}
	node := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeExternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1 "},
		{Type: corev1.NodeInternalIP, Address: "fe80::1%eth0"}, {Type: corev1.NodeInternalIP, Address: "0.0.0.0"},
		{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}, {Type: corev1.NodeInternalIP, Address: "fd00::2"},
	}}}
	if got := InternalIPs(node); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}) {
		t.Errorf("internal addresses %v", got)
	}
}

// A user who can edit a Service can edit its record: parsing is limited and accepts only resource groups.
func TestARecordOfResourceGroupsIsBelievedInBounds(t *testing.T) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "svc"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	s.Annotations = map[string]string{metadata.GroupsAnnotation: "a, ../b, c/d, e,1,2,3,4,5,6,7,8,9"}
	if got := strings.Join(ServiceLB(s).Record.Groups, " "); got != "a e 1 2 3 4 5 6" {
		t.Errorf("believed: %s", got)
	}
}

func TestAddressesThatNoLoadBalancerReaches(t *testing.T) {
	n := &corev1.Node{}
	for _, ip := range []string{"127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "fe80::1", "fe80::1%eth0", "::1", "x", "", "10.0.0.4", "fd00::4"} {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	if got := fmt.Sprint(InternalIPs(n)); got != "[10.0.0.4 fd00::4]" {
		t.Errorf("got %s", got)
	}
}

// The machine of a node follows from a providerID of Azure.
func TestMachineOf(t *testing.T) {
	s := &Snapshot{}
	s.InMemory()
	const vm = "/subscriptions/s0/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/n1"
	for name, id := range map[string]string{"n1": "azure://" + vm, "n2": "", "n3": "kind://docker/n3"} {
		n := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: id}}
		n.Name = name
		if err := s.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := s.MachineOf("n1"); err != nil || m.Key() != strings.ToLower(vm) {
		t.Errorf("%v, %v", m, err)
	}
	for name, want := range map[string]string{"n2": "no spec.providerID", "n3": "names no virtual machine of Azure", "n4": "no such node"} {
		if _, err := s.MachineOf(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
