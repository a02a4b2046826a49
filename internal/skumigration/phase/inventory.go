// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// Snapshot is a snapshot of Azure.
type Snapshot struct {
	// LoadBalancers are those of the cluster; Others share their resource group.
	LoadBalancers, Others []lb.LoadBalancer
	// PublicIPs are those of the cluster's frontends, and of the resource groups of its Services.
	PublicIPs  []lb.PublicIP
	Interfaces []lb.NetworkInterface
	ScaleSets  []ScaleSet
	// Subnets are those of [SubnetsWithoutGroup], by lower-case id; Usages are the subscription's limits. Both are
	// read only before a migration.
	Subnets map[string]Subnet
	Usages  []Usage
	// Zones are the zones of private frontends that are created, by location.
	Zones map[string]RegionZones
}

// RegionZones are the availability zones of a region: all of them, if known, and those of a frontend of a Service
// that names none.
type RegionZones struct {
	Default, All []string
}

// pick returns the zones that a Service names if the region has them, otherwise the default: a wrong annotation must
// not keep an address from coming back.
func (r RegionZones) pick(named []string) []string {
	if len(named) == 0 || slices.ContainsFunc(named, func(zone string) bool { return !slices.Contains(r.All, zone) }) {
		return r.Default
	}
	return named
}

// ScaleSet has instances only if it is uniform.
type ScaleSet struct {
	lb.ScaleSet
	Instances []lb.Instance
	Known     nic.ScaleSetState
}

// Service is the status and the desired frontends of a Service.
type Service struct {
	// Name is "namespace/name"; Owner prefixes its rule names.
	Name, Owner  string
	LoadBalancer lb.LoadBalancerID
	// Skip is true for a deleted Service or a dry run: nothing is created, and existing resources
	// stay.
	Skip bool
	// Frontends have a public IP or subnet each.
	Frontends []lb.Frontend
	Addresses []netip.Addr
	// Rules include DedicatedRules, those for a pool of its own.
	Rules, DedicatedRules int
}

// BuildJournal adds every address to keep: frontends of Basic load balancers, and status addresses of
// Services with a missing load balancer or a free Basic public IP. Frontends of an existing Basic
// load balancer replace recorded ones.
func BuildJournal(j Journal, snapshot Snapshot, services []Service, location string) Journal {
	if j.Done || j.CompletedUndo != nil {
		j = Journal{Claims: j.openClaims()} // that migration is over
	}
	j = j.clone()
	for _, b := range snapshot.LoadBalancers {
		if b.SKU != lb.Basic {
			continue
		}
		at := j.findOrAdd(LoadBalancer{ID: b.ID, Location: b.Location, Tags: maps.Clone(b.Tags)})
		for _, f := range b.Frontends {
			if a, ok := frontendAddress(f, snapshot); ok {
				at.setAddress(a)
			}
		}
	}
	for _, s := range services {
		if s.Skip {
			continue
		}
		for _, f := range s.Frontends {
			if a, ok := statusAddress(f, s, snapshot); ok {
				j.findOrAdd(LoadBalancer{ID: s.LoadBalancer, Location: location}).addAddress(a)
			}
		}
	}
	for _, s := range services {
		j.recordZones(s)
	}
	return j
}

// recordZones records the zones that a Service names for its private frontends.
func (j *Journal) recordZones(s Service) {
	at := slices.IndexFunc(j.LoadBalancers, func(balancer LoadBalancer) bool { return balancer.ID.Key() == s.LoadBalancer.Key() })
	if at < 0 {
		return
	}
	for _, f := range s.Frontends {
		for n, a := range j.LoadBalancers[at].Addresses {
			if a.PublicIP == "" && strings.EqualFold(a.Frontend, f.Name) {
				j.LoadBalancers[at].Addresses[n].Zones = slices.Clone(f.Zones)
			}
		}
	}
}

func (j *Journal) findOrAdd(b LoadBalancer) *LoadBalancer {
	at := slices.IndexFunc(j.LoadBalancers, func(balancer LoadBalancer) bool { return balancer.ID.Key() == b.ID.Key() })
	if at < 0 {
		at = len(j.LoadBalancers)
		j.LoadBalancers = append(j.LoadBalancers, b)
	}
	return &j.LoadBalancers[at]
}

// addAddress skips a recorded frontend or public IP.
func (b *LoadBalancer) addAddress(a Address) {
	for _, address := range b.Addresses {
		if strings.EqualFold(address.Frontend, a.Frontend) || a.PublicIP != "" && strings.EqualFold(address.PublicIP, a.PublicIP) {
			return
		}
	}
	b.Addresses = append(b.Addresses, a)
}

// setAddress replaces entries with the same frontend or address.
func (b *LoadBalancer) setAddress(a Address) {
	isSame := func(address Address) bool {
		return strings.EqualFold(address.Frontend, a.Frontend) || a.PublicIP != "" && strings.EqualFold(address.PublicIP, a.PublicIP) ||
			a.PublicIP == "" && address.IP == a.IP && strings.EqualFold(address.Subnet, a.Subnet)
	}
	at := slices.IndexFunc(b.Addresses, isSame)
	if at < 0 {
		b.Addresses = append(b.Addresses, a)
		return
	}
	if old := b.Addresses[at]; !a.IP.IsValid() && strings.EqualFold(old.PublicIP, a.PublicIP) {
		a.IP = old.IP // currently not shown
	}
	later := slices.DeleteFunc(slices.Clone(b.Addresses[at+1:]), isSame)
	b.Addresses = append(append(b.Addresses[:at], a), later...)
}

func frontendAddress(f lb.Frontend, snapshot Snapshot) (Address, bool) {
	a := Address{Frontend: f.Name, Family: f.Family, IP: f.PrivateIP, Subnet: f.Subnet}
	if f.PublicIP != "" {
		ip, found := snapshot.findPublicIP(f.PublicIP)
		a = Address{Frontend: f.Name, Family: ip.Family, IP: ip.Address, PublicIP: f.PublicIP}
		return a, found
	}
	return a, f.Subnet != "" && f.PrivateIP.IsValid()
}

// statusAddress is for frontends that no load balancer has. It returns false if there is no address to
// keep.
func statusAddress(f lb.Frontend, s Service, snapshot Snapshot) (Address, bool) {
	at := slices.IndexFunc(s.Addresses, f.Family.Contains)
	if at < 0 {
		return Address{}, false
	}
	a := Address{Frontend: f.Name, Family: f.Family, IP: s.Addresses[at], PublicIP: f.PublicIP, Subnet: f.Subnet, StatusOnly: true}
	if f.PublicIP != "" {
		ip, found := snapshot.findPublicIP(f.PublicIP)
		return a, found && ip.SKU == lb.Basic && ip.UsedBy == "" && ip.Address == a.IP
	}
	_, exists := snapshot.findLoadBalancer(s.LoadBalancer)
	public := slices.ContainsFunc(snapshot.PublicIPs, func(ip lb.PublicIP) bool { return ip.Address == a.IP }) // the Service was not internal before
	return a, f.Subnet != "" && !exists && !public && !snapshot.hasFrontend(f, a.IP) && (!f.Static || f.PrivateIP == a.IP)
}

// HasMissingFrontend reports whether a Service shows an address without a frontend.
func (s Snapshot) HasMissingFrontend(of Service) bool {
	return slices.ContainsFunc(of.Frontends, func(f lb.Frontend) bool {
		at := slices.IndexFunc(of.Addresses, f.Family.Contains)
		return at >= 0 && !s.hasFrontend(f, of.Addresses[at])
	})
}

func (s Snapshot) hasFrontend(f lb.Frontend, shown netip.Addr) bool {
	return slices.ContainsFunc(s.LoadBalancers, func(b lb.LoadBalancer) bool {
		return slices.ContainsFunc(b.Frontends, func(frontend lb.Frontend) bool {
			return strings.EqualFold(frontend.Name, f.Name) || f.PublicIP != "" && strings.EqualFold(frontend.PublicIP, f.PublicIP) ||
				f.PublicIP == "" && frontend.PrivateIP.IsValid() && frontend.PrivateIP == shown
		})
	})
}

func (s Snapshot) findPublicIP(id string) (lb.PublicIP, bool) {
	at := slices.IndexFunc(s.PublicIPs, func(ip lb.PublicIP) bool { return strings.EqualFold(ip.ID.String(), id) })
	if at < 0 {
		return lb.PublicIP{}, false
	}
	return s.PublicIPs[at], true
}

func (s Snapshot) findLoadBalancer(id lb.LoadBalancerID) (lb.LoadBalancer, bool) {
	at := slices.IndexFunc(s.LoadBalancers, func(b lb.LoadBalancer) bool { return b.ID.Key() == id.Key() })
	if at < 0 {
		return lb.LoadBalancer{}, false
	}
	return s.LoadBalancers[at], true
}

func (s Snapshot) basicLoadBalancers() []lb.LoadBalancer {
	return slices.DeleteFunc(slices.Clone(s.LoadBalancers), func(b lb.LoadBalancer) bool { return b.SKU != lb.Basic })
}
