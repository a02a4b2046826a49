// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

const machines = "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Compute/"

// poolOf has interfaces with these names; a number is an instance.
func poolOf(names ...string) (p lb.Pool) {
	for _, name := range names {
		nic := "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Network/networkInterfaces/" + name
		if name[0] >= '0' && name[0] <= '9' {
			nic = machines + "virtualMachineScaleSets/blue/virtualMachines/" + name + "/networkInterfaces/nic"
		}
		p.Addresses = append(p.Addresses, lb.Address{Interface: nic + "/ipConfigurations/ip"})
	}
	return p
}

// A resource group is listed once for all pools, again for a new interface or after an hour, and
// once a minute for unattached interfaces.
func TestInterfacesAreListedOnce(t *testing.T) {
	var known interfaceCache
	in, lists, fails := map[string]string{"a": "vm-a", "b": "vm-b"}, 0, error(nil)
	list := func(_, group string) (interfaceMap, error) {
		lists++
		copied := interfaceMap{}
		for name, machine := range in {
			copied[name] = cachedInterface{Machine: machine, Addresses: map[string]netip.Addr{"ip": netip.AddrFrom4([4]byte{10, 0, 0, name[0]})}}
		}
		if group != "RG" {
			t.Errorf("group %s", group)
		}
		return copied, fails
	}
	at := time.Now()
	for _, step := range []struct {
		after time.Duration
		does  func()
		pool  string
		want  string
		lists int
	}{
		{0, nil, "3", "3", 0},
		{0, nil, "A b 3", "vm-a vm-b 3", 1},
		{59 * time.Minute, nil, "a", "vm-a", 0},
		{time.Minute, func() { in["a"] = "vm-other" }, "a b", "vm-other vm-b", 1},
		{time.Second, func() { in["c"] = "vm-c" }, "a c", "vm-other vm-c", 1},
		{time.Second, func() { in["d"] = "" }, "d e", "- -", 1},
		{time.Second, nil, "d e a", "- - vm-other", 0},
		{time.Minute, func() { in["d"] = "vm-d" }, "d e", "vm-d -", 1},
		{time.Hour, func() { fails = errors.New("no") }, "a", "no", 1},
		{0, func() { fails = nil }, "a", "vm-other", 1},
	} {
		at = at.Add(step.after)
		if step.does != nil {
			step.does()
		}
		lists = 0
		shown, err := known.ResolveMachines(poolOf(strings.Fields(step.pool)...), at, list)
		var got []string
		for _, a := range shown.Addresses {
			if of := strings.Contains(a.Interface, "virtualMachineScaleSets"); a.Machine != "" && a.IP.IsValid() == of {
				t.Errorf("%s: address %s", a.Interface, a.IP)
			}
			name := a.Machine[strings.LastIndex(a.Machine, "/")+1:]
			if name == "" {
				name = "-"
			}
			got = append(got, name)
		}
		if err != nil {
			got = append(got, err.Error())
		}
		if strings.Join(got, " ") != step.want || lists != step.lists {
			t.Errorf("%s: %v with %d lists, want %s with %d", step.pool, got, lists, step.want, step.lists)
		}
	}
	if _, err := known.ResolveMachines(lb.Pool{Addresses: []lb.Address{{Interface: "frontend"}}}, at, list); err != nil {
		t.Error(fmt.Errorf("what is no interface has no machine: %w", err))
	}
}
