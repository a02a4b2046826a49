// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"fmt"
	"net/netip"
	"testing"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/test/objects"
)

// Foreign addresses are those not in the BackendPool's record, or without one, not of nodes.
func TestForeignMembers(t *testing.T) {
	at := lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: "kubernetes"}
	made, took := objects.RecordedAs(v1alpha1.MadeForNodes), objects.WithAzurePool
	foreign := func(p *v1alpha1.BackendPool) { p.Namespace, p.Name = "shop", "mine" }
	wrote := func(p *v1alpha1.BackendPool) { p.Status.WrittenAddresses = []string{"10.0.0.1", "10.0.0.8"} } // 10.0.0.8 is of a deleted node
	for _, tt := range []struct {
		about string
		pool  string
		edits []func(*v1alpha1.BackendPool)
		want  string
	}{
		{"on record", "kubernetes", []func(*v1alpha1.BackendPool){made, took, wrote}, "[10.0.0.2 10.0.7.7]"},
		{"taken, and nothing on record", "kubernetes", []func(*v1alpha1.BackendPool){made, took}, "[10.0.0.1 10.0.0.2 10.0.0.8 10.0.7.7]"},
		{"made by Weir, and not taken yet", "kubernetes", []func(*v1alpha1.BackendPool){made}, "[]"},
		{"made by somebody, and not taken yet", "kubernetes", []func(*v1alpha1.BackendPool){foreign}, "[10.0.0.8 10.0.7.7]"},
		{"without a BackendPool", "other", nil, "[10.0.0.8 10.0.7.7]"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			p := objects.ManagedNodePool(tt.edits...)
			r := newHoldingCluster(t, p)
			r.Ownership.Statuses.AdoptPool(p)
			if err := r.View.Add(objects.NewNode(1), objects.NewNode(2)); err != nil {
				t.Fatal(err)
			}
			pool := lb.Pool{ID: lb.PoolID{LoadBalancer: at, Name: tt.pool}}
			for _, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.8", "10.0.7.7"} {
				pool.Addresses = append(pool.Addresses, lb.Address{Name: ip, IP: netip.MustParseAddr(ip)})
			}
			pool.Addresses = append(pool.Addresses, lb.Address{Name: "an interface"})
			got, err := r.Services.ForeignMembers(t.Context(), pool)
			if fmt.Sprint(got) != tt.want || err != nil {
				t.Errorf("%v (%v), want %s", got, err, tt.want)
			}
		})
	}
}

// In a pool of network interfaces those of nodes are Weir's in any case; the others are named.
func TestForeignInterfaces(t *testing.T) {
	const group = "/subscriptions/s0/resourceGroups/rg0/providers/Microsoft."
	r := newHoldingCluster(t)
	instance, alone := objects.NewNode(1), objects.NewNode(2)
	instance.Spec.ProviderID = "azure://" + group + "Compute/virtualMachineScaleSets/Blue/virtualMachines/0"
	alone.Spec.ProviderID = "azure://" + group + "Compute/virtualMachines/Alone"
	if err := r.View.Add(instance, alone, objects.NewNode(3)); err != nil {
		t.Fatal(err)
	}
	pool := lb.Pool{NIC: true, Addresses: []lb.Address{
		{Name: "n1", Interface: group + "Compute/virtualMachineScaleSets/blue/virtualMachines/0/networkInterfaces/nic/ipConfigurations/ip", Machine: lb.MachineKey(instance.Spec.ProviderID)},
		{Name: "n2", Interface: group + "Network/networkInterfaces/alone-nic/ipConfigurations/ip", Machine: lb.MachineKey(alone.Spec.ProviderID)},
		{Name: "x1", Interface: group + "Compute/virtualMachineScaleSets/blue/virtualMachines/7/networkInterfaces/nic/ipConfigurations/ip", Machine: lb.MachineKey(group + "Compute/virtualMachineScaleSets/blue/virtualMachines/7")},
		{Name: "x2", Interface: group + "Network/networkInterfaces/bastion-nic/ipConfigurations/ip", Machine: lb.MachineKey(group + "Compute/virtualMachines/bastion")},
		{Name: "x3", Interface: group + "Network/networkInterfaces/spare/ipConfigurations/ip"},
		{Name: "x4"},
	}}
	got, err := r.Services.ForeignMembers(t.Context(), pool)
	want := "[network interface of instance 7 of scale set blue network interface bastion-nic network interface spare network interface x4]"
	if fmt.Sprint(got) != want || err != nil {
		t.Errorf("%v (%v), want %s", got, err, want)
	}
}

// A pool is Weir's to fill while it has a BackendPool created by Weir, even a deleted one.
func TestPoolsFilledByWeir(t *testing.T) {
	at := lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: "Kubernetes"}, Name: "kubernetes"}
	made := objects.RecordedAs(v1alpha1.MadeForNodes)
	for about, tt := range map[string]struct {
		pool *v1alpha1.BackendPool
		want bool
	}{
		"Weir's": {objects.ManagedNodePool(made), true}, "one that goes": {objects.ManagedNodePool(made, objects.WithDeletion), true},
		"of another pool": {objects.ManagedNodePool(made, objects.OfPool("other")), false}, "another owner's": {objects.ManagedNodePool(objects.WithName("mine")), false},
	} {
		r := newHoldingCluster(t, tt.pool)
		r.Ownership.Statuses.AdoptPool(tt.pool)
		if got := r.Services.HasManagedPool(at); got != tt.want {
			t.Errorf("%s: %v", about, got)
		}
	}
}
