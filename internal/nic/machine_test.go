// SPDX-License-Identifier: Apache-2.0

package nic_test

import (
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

const compute = "azure:///subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/"

func TestParseMachine(t *testing.T) {
	for _, tt := range []struct{ name, text, want, lane string }{
		{"a virtual machine", compute + "virtualMachines/n1", "virtual machine n1", ""},
		{"an instance of a uniform scale set", compute + "virtualMachineScaleSets/blue/virtualMachines/12", "instance 12 of scale set blue", "/subscriptions/s1/resourcegroups/rg/providers/microsoft.compute/virtualmachinescalesets/blue"},
		{"other capitals", strings.ToUpper(compute) + "VIRTUALMACHINESCALESETS/Blue/VIRTUALMACHINES/3", "instance 3 of scale set Blue", "/subscriptions/s1/resourcegroups/rg/providers/microsoft.compute/virtualmachinescalesets/blue"},
		{"an instance that is no number", compute + "virtualMachineScaleSets/blue/virtualMachines/3a", "", ""},
		{"a way out", compute + "virtualMachineScaleSets/blue/virtualMachines/..", "", ""},
		{"another cloud's", "aws:///eu-central-1a/i-0", "", ""},
		{"nothing", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := nic.ParseMachine(tt.text)
			if (err != nil) != (tt.want == "") {
				t.Fatalf("got %v, %v", m, err)
			}
			if err != nil {
				return
			}
			if m.String() != tt.want || m.Key() != lb.MachineKey(tt.text) || m.IsUniform() != (tt.lane != "") {
				t.Errorf("got %s with key %s", m, m.Key())
			}
			if r := (nic.Resource{ID: m.ScaleSet, Instance: m.Instance}); m.IsUniform() && (r.WorkerKey() != tt.lane || r.Key() != m.Key() || r.Kind() != nic.KindInstance) {
				t.Errorf("%s: lane %q, key %q", r, r.WorkerKey(), r.Key())
			}
		})
	}
}

// Parsed IDs are safe in URLs for any providerID.
func FuzzParseMachine(f *testing.F) {
	f.Add(compute + "virtualMachines/n1")
	f.Add(compute + "virtualMachineScaleSets/blue/virtualMachines/12")
	f.Add("azure:///subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/../virtualMachines/1?x")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := nic.ParseMachine(text)
		if err != nil {
			return
		}
		id := m.VM
		if m.IsUniform() {
			id = m.ScaleSet
		}
		if err := id.Validate(); err != nil || strings.ContainsAny(m.Instance, "/?#%. ") {
			t.Errorf("%q became %+v, %v", text, m, err)
		}
		if m.Key() != lb.MachineKey(text) {
			t.Errorf("key %q, want %q", m.Key(), lb.MachineKey(text))
		}
	})
}

// A scale set and its instances share a worker and have different keys.
func TestResources(t *testing.T) {
	set := lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeScaleSet, Name: "blue"}
	nic1 := lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeNetworkInterface, Name: "n1"}
	keys, lanes := map[string]bool{}, map[string]bool{}
	for kind, r := range map[nic.Kind]nic.Resource{
		nic.KindInterface: {ID: nic1}, nic.KindModel: {ID: set}, nic.KindInstance: {ID: set, Instance: "1"},
	} {
		keys[r.Key()], lanes[r.WorkerKey()] = true, true
		if r.Kind() != kind || !strings.HasPrefix(r.String(), string(kind)) {
			t.Errorf("%s is of kind %q, want %q", r, r.Kind(), kind)
		}
	}
	if len(keys) != 3 || len(lanes) != 2 {
		t.Errorf("%d keys and %d lanes", len(keys), len(lanes))
	}
}
