// SPDX-License-Identifier: Apache-2.0

package nic_test

import (
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

func networkInterface(name string, m nic.Machine, pools string) lb.NetworkInterface {
	return lb.NetworkInterface{
		ID:           lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeNetworkInterface, Name: name},
		Etag:         "e1",
		Provisioning: lb.Succeeded, Machine: m.Key(),
		InterfaceConfiguration: lb.InterfaceConfiguration{IPConfigurations: []lb.IPConfiguration{{Name: "ip", Family: lb.IPv4, Primary: true, Pools: ids(pools)}}},
	}
}

func TestInterface(t *testing.T) {
	state := func(i lb.NetworkInterface, p lb.Provisioning) lb.NetworkInterface { i.Provisioning = p; return i }
	primary := func(i lb.NetworkInterface) lb.NetworkInterface { i.Primary = true; return i }
	other := nic.Machine{VM: lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeVirtualMachine, Name: "other"}}
	const k8s = "kubernetes/k8s"
	for _, tt := range []struct {
		name  string
		shown []lb.NetworkInterface
		want  string
		write string // the interface and its written pools
		waits string
	}{
		{"joins", []lb.NetworkInterface{networkInterface("n", alone, "o/x")}, k8s, "n o/x kubernetes/k8s", ""},
		{"is in", []lb.NetworkInterface{networkInterface("n", alone, k8s)}, k8s, "", ""},
		{"leaves", []lb.NetworkInterface{networkInterface("n", alone, "o/x kubernetes/k8s")}, "", "n o/x", ""},
		{"another machine's is not written", []lb.NetworkInterface{networkInterface("n", other, k8s)}, "", "", ""},
		{"none", []lb.NetworkInterface{networkInterface("n", other, "")}, k8s, "", "virtual machine alone has no network interface"},
		{"none, and none is needed", nil, "", "", ""},
		{"the primary one of two", []lb.NetworkInterface{networkInterface("m", alone, ""), primary(networkInterface("n", alone, ""))}, k8s, "n kubernetes/k8s", ""},
		{"no primary one of two", []lb.NetworkInterface{networkInterface("m", alone, ""), networkInterface("n", alone, "")}, k8s, "", "virtual machine alone has 2 network interfaces, and none is primary"},
		{"another write is under way", []lb.NetworkInterface{state(networkInterface("n", alone, ""), lb.Updating)}, k8s, "", "network interface n is Updating"},
		{"is in, by a write that is under way", []lb.NetworkInterface{state(networkInterface("n", alone, k8s), lb.Updating)}, k8s, "", "network interface n is Updating"},
		{"in none of ours, whatever is under way", []lb.NetworkInterface{state(networkInterface("n", alone, "o/x"), lb.Updating)}, "", "", ""},
		{"is in, by a write that failed", []lb.NetworkInterface{state(networkInterface("n", alone, k8s), lb.Failed)}, k8s, "n kubernetes/k8s", ""},
		{"in none of ours, and failed", []lb.NetworkInterface{state(networkInterface("n", alone, "o/x"), lb.Failed)}, "", "", ""},
		{"is being deleted", []lb.NetworkInterface{state(networkInterface("n", alone, ""), lb.Deleting)}, k8s, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			step := nic.NextStep(alone, tt.shown, nic.Pools{lb.IPv4: poolIDs(tt.want)}, nic.NewManagedPools(nil, poolIDs(k8s)))
			write := ""
			if step.Write != nil {
				write = step.Write.ID.Name + " " + names(step.Write.IPConfigurations[0].Pools)
				if step.Write.Etag != "e1" {
					t.Error("the etag is lost")
				}
			}
			if write != tt.write || step.Reason != tt.waits {
				t.Errorf("got %q, waits %q; want %q, waits %q", write, step.Reason, tt.write, tt.waits)
			}
		})
	}
}

// A missing address is reported once everything else is in sync.
func TestAnInterfaceWithoutAnAddress(t *testing.T) {
	want := nic.Pools{lb.IPv4: poolIDs("kubernetes/k8s"), lb.IPv6: poolIDs("kubernetes/k8s-IPv6")}
	shown := networkInterface("n", alone, "")
	step := nic.NextStep(alone, []lb.NetworkInterface{shown}, want, nil)
	if step.Write == nil || step.Reason != "" {
		t.Fatalf("got %+v", step)
	}
	step = nic.NextStep(alone, []lb.NetworkInterface{*step.Write}, want, nil)
	if step.Write != nil || step.Reason != "network interface n has no IPv6 address" {
		t.Errorf("got %+v", step)
	}
}
