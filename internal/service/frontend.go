// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"regexp"

	"weir.dev/weir/internal/lb"
)

// Frontend is a frontend of one family with what it takes to make it.
type Frontend struct {
	Frontend lb.Frontend
	// PublicIP is what a public frontend needs; nil for a private one.
	PublicIP *PublicIP
	// stem and suffix are what the names of rules and probes begin and end with.
	stem, suffix string
}

// subnetRule is Azure's for names of subnets:
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
var subnetRule = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,78}[0-9A-Za-z_])?$`)

// frontends returns a frontend for each family.
func (r *reader) frontends(s Service, set Settings, internal bool) []Frontend {
	subnet, names := r.text(InternalSubnet)
	if names && !subnetRule.MatchString(subnet) {
		r.wrong(InternalSubnet, subnet, "the name of a subnet of the cluster's virtual network")
	}
	stem := s.Owner()
	if internal && names {
		stem += "-" + subnet
	}
	if !names {
		subnet = set.Subnet
	}
	var frontends []Frontend
	for _, family := range s.Families {
		f := Frontend{stem: stem, suffix: s.suffix(family)}
		f.Frontend = lb.Frontend{Name: stem + f.suffix, Family: family}
		if internal {
			r.private(&f.Frontend, s, set, subnet)
		} else {
			f.PublicIP = r.publicIP(s, set, family)
		}
		frontends = append(frontends, f)
	}
	return frontends
}

// private makes a frontend one with an address of a subnet.
func (r *reader) private(f *lb.Frontend, s Service, set Settings, subnet string) {
	if set.VirtualNetwork == "" || subnet == "" {
		r.wrong(Internal, "true", "vnetName and subnetName in azure.json, or "+InternalSubnet)
		return
	}
	f.Subnet = set.VirtualNetwork + "/subnets/" + subnet
	f.PrivateIP = r.pinned(s, f.Family)
	f.Static = f.PrivateIP.IsValid()
}

// pinned is the address that a Service wants for a family; the zero Addr if any will do.
func (r *reader) pinned(s Service, family lb.Family) netip.Addr {
	name := map[lb.Family]string{lb.IPv4: IPv4, lb.IPv6: IPv6}[family]
	if value, ok := r.text(name); ok {
		return r.address(name, value, family)
	}
	if value := s.literal(family); value != "" {
		return r.address("spec.loadBalancerIP", value, family)
	}
	return netip.Addr{}
}
