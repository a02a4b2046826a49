// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/skumigration/phase"
)

// model fakes the part of Azure that a migration uses. A rejected request returns an error; an
// invariant violation panics.
type model struct {
	seen phase.Snapshot
	next int // next public address
}

func (m *model) publicIP(id string) *lb.PublicIP {
	at := slices.IndexFunc(m.seen.PublicIPs, func(ip lb.PublicIP) bool { return strings.EqualFold(ip.ID.String(), id) })
	if at < 0 {
		return nil
	}
	return &m.seen.PublicIPs[at]
}

func (m *model) fresh() netip.Addr {
	m.next++
	return netip.AddrFrom4([4]byte{198, 18, byte(m.next >> 8), byte(m.next)})
}

func (m *model) putPublicIP(next lb.PublicIP) error {
	got := m.publicIP(next.ID.String())
	switch {
	case got == nil:
		panic("it makes a public IP")
	case got.SKU != next.SKU && (got.SKU != lb.Basic || !got.Static || got.UsedBy != ""):
		return fmt.Errorf("PublicIPAddressSkuCannotBeChanged: %s", next.ID.Name)
	case got.Static && !next.Static:
		panic("it makes a public IP Dynamic")
	case !maps.Equal(got.Tags, next.Tags) || got.DNSLabel != next.DNSLabel:
		panic("it takes away what says whose a public IP is") // after the loss of a cluster, nothing else records it
	}
	got.SKU, got.Static, got.Provisioning = next.SKU, next.Static, lb.Succeeded
	if !got.Address.IsValid() {
		got.Address = m.fresh()
	}
	return nil
}

// members returns what is in a pool or references it.
func (m *model) members(id string) (names []string) {
	in := func(about string, interfaces ...lb.InterfaceConfiguration) {
		for _, i := range interfaces {
			for _, c := range i.IPConfigurations {
				if slices.ContainsFunc(c.Pools, func(p string) bool { return strings.EqualFold(p, id) }) {
					names = append(names, about)
				}
			}
		}
	}
	for _, i := range m.seen.Interfaces {
		in(i.ID.String()+"/ipConfigurations/ip", i.InterfaceConfiguration)
	}
	for _, s := range m.seen.ScaleSets {
		for _, i := range s.Instances {
			in(s.ID.String()+"/virtualMachines/"+i.ID+"/networkInterfaces/nic/ipConfigurations/ip", i.Interfaces...)
		}
		in(s.ID.String(), s.Interfaces...)
	}
	return names
}

func (m *model) delete(b lb.LoadBalancer) error {
	for _, p := range b.Pools {
		if used := m.members(b.ID.String() + "/backendAddressPools/" + p.ID.Name); len(used) > 0 {
			return fmt.Errorf("InUseLoadBalancerCannotBeDeleted: %s", used[0])
		}
	}
	for _, f := range b.Frontends {
		m.free(f)
	}
	m.seen.LoadBalancers = slices.DeleteFunc(m.seen.LoadBalancers, func(balancer lb.LoadBalancer) bool { return balancer.ID == b.ID })
	return nil
}

func (m *model) free(f lb.Frontend) {
	if ip := m.publicIP(f.PublicIP); ip != nil {
		if !ip.Static && ip.Address.IsValid() {
			panic("public IP " + ip.ID.Name + " is free while it is Dynamic")
		}
		ip.UsedBy = ""
	}
}

func (m *model) put(b lb.LoadBalancer) error {
	at := slices.IndexFunc(m.seen.LoadBalancers, func(balancer lb.LoadBalancer) bool { return balancer.ID == b.ID })
	if at >= 0 && m.seen.LoadBalancers[at].SKU != b.SKU {
		return fmt.Errorf("LoadBalancerSkuCannotBeChanged: %s", b.ID.Name)
	}
	for _, f := range b.Frontends {
		ip, own := m.publicIP(f.PublicIP), b.ID.String()+"/frontendIPConfigurations/"+f.Name
		switch {
		case f.PublicIP != "" && ip == nil:
			return fmt.Errorf("InvalidResourceReference: %s", f.PublicIP)
		case ip != nil && ip.SKU != b.SKU:
			return fmt.Errorf("PublicIPAndLBSkuDoNotMatch: %s", ip.ID.Name)
		case ip != nil && ip.UsedBy != "" && ip.UsedBy != own:
			return fmt.Errorf("PublicIPAddressInUse: %s", ip.ID.Name)
		case ip == nil && !f.Static && !f.PrivateIP.IsValid():
			panic("it lets Azure choose a private address")
		case ip == nil && slices.ContainsFunc(m.seen.LoadBalancers, func(o lb.LoadBalancer) bool {
			return o.ID != b.ID && slices.ContainsFunc(o.Frontends, func(of lb.Frontend) bool { return of.Subnet == f.Subnet && of.PrivateIP == f.PrivateIP })
		}):
			return fmt.Errorf("PrivateIPAddressIsAllocated: %s", f.PrivateIP)
		}
	}
	for _, f := range b.Frontends {
		if ip := m.publicIP(f.PublicIP); ip != nil {
			ip.UsedBy = b.ID.String() + "/frontendIPConfigurations/" + f.Name
		}
	}
	b.Etag, b.Provisioning = "1", lb.Succeeded
	if at < 0 {
		m.seen.LoadBalancers = append(m.seen.LoadBalancers, b)
	} else {
		m.seen.LoadBalancers[at] = b
	}
	return nil
}

func (m *model) set(id lb.ResourceID) *phase.ScaleSet {
	return &m.seen.ScaleSets[slices.IndexFunc(m.seen.ScaleSets, func(s phase.ScaleSet) bool { return s.ID == id })]
}

// writes returns the requests of some steps, to be sent in any order.
func (m *model) writes(s phase.Steps) (functions []func() error) {
	for _, ip := range s.PublicIPs {
		functions = append(functions, func() error { return m.putPublicIP(ip) })
	}
	for _, i := range s.Interfaces {
		functions = append(functions, func() error {
			at := slices.IndexFunc(m.seen.Interfaces, func(nic lb.NetworkInterface) bool { return nic.ID == i.ID })
			i.Provisioning = lb.Succeeded
			m.seen.Interfaces[at] = i
			return nil
		})
	}
	for _, of := range s.ScaleSets {
		functions = append(functions, m.ofSet(of)...)
	}
	for _, b := range s.Delete {
		functions = append(functions, func() error { return m.delete(b) })
	}
	for _, b := range s.Put {
		functions = append(functions, func() error { return m.put(b) })
	}
	return functions
}

func (m *model) ofSet(of phase.ScaleSetSteps) (functions []func() error) {
	if of.Model != nil {
		functions = append(functions, func() error {
			set := m.set(of.ID)
			set.Interfaces = of.Model.Interfaces
			for i := range set.Instances {
				if set.UpgradeMode == lb.UpgradeManual {
					set.Instances[i].LatestModel = false
				} else {
					set.Instances[i].Interfaces = set.Interfaces
				}
			}
			return nil
		})
	}
	for _, id := range of.Upgrade {
		functions = append(functions, func() error { panic("it upgrades instance " + id + ", of which it is not known what is new") })
	}
	for _, i := range of.Write {
		functions = append(functions, func() error {
			set := m.set(of.ID)
			set.Instances[slices.IndexFunc(set.Instances, func(have lb.Instance) bool { return have.ID == i.ID })] = i
			return nil
		})
	}
	return functions
}

// shown returns a snapshot: pools with their members.
func (m *model) shown() phase.Snapshot {
	seen := m.seen
	seen.LoadBalancers = slices.Clone(seen.LoadBalancers)
	seen.PublicIPs = slices.Clone(seen.PublicIPs)
	seen.Interfaces = slices.Clone(seen.Interfaces)
	seen.ScaleSets = slices.Clone(seen.ScaleSets)
	for at := range seen.LoadBalancers {
		b := &seen.LoadBalancers[at]
		b.Pools = slices.Clone(b.Pools)
		for p := range b.Pools {
			b.Pools[p].NIC, b.Pools[p].Addresses = true, nil
			for _, id := range m.members(b.ID.String() + "/backendAddressPools/" + b.Pools[p].ID.Name) {
				b.Pools[p].Addresses = append(b.Pools[p].Addresses, lb.Address{Interface: id})
			}
		}
	}
	for at := range seen.ScaleSets {
		seen.ScaleSets[at].Instances = slices.Clone(seen.ScaleSets[at].Instances)
		seen.ScaleSets[at].Known = nic.ScaleSetState{}
	}
	return seen
}
