// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// Seen is a snapshot of Azure.
type Seen struct {
	// Balancers are those of the cluster; Others share their resource group.
	Balancers, Others []lb.LoadBalancer
	// PublicIPs are those of the cluster's frontends, and of the resource groups of its Services.
	PublicIPs  []lb.PublicIP
	Interfaces []lb.NetworkInterface
	ScaleSets  []ScaleSet
	// Subnets are those of [Bare], by lower-case id; Usages are the subscription's limits. Both are
	// read only before a migration.
	Subnets map[string]Subnet
	Usages  []Usage
}

// ScaleSet has instances only if it is uniform.
type ScaleSet struct {
	lb.ScaleSet
	Instances []lb.Instance
	Known     nic.Known
}

// Service is the status and the desired frontends of a Service.
type Service struct {
	// Name is "namespace/name"; Owner prefixes its rule names.
	Name, Owner string
	Balancer    lb.LoadBalancerID
	// Idle is true for a deleted Service or a dry run: nothing is created, and existing resources
	// stay.
	Idle bool
	// Frontends have a public IP or subnet each.
	Frontends []lb.Frontend
	Shown     []netip.Addr
	// Rules include DedicatedRules, those for a pool of its own.
	Rules, OwnRules int
}

// Stock adds every address to keep: frontends of Basic load balancers, and status addresses of
// Services with a missing load balancer or a free Basic public IP. Frontends of an existing Basic
// load balancer replace recorded ones.
func Stock(j Journal, snapshot Seen, services []Service, location string) Journal {
	if j.Done || j.Undone != nil {
		j = Journal{Owed: j.owed()} // that migration is over
	}
	j = j.clone()
	for _, b := range snapshot.Balancers {
		if b.SKU != lb.Basic {
			continue
		}
		at := j.of(Balancer{ID: b.ID, Location: b.Location, Tags: maps.Clone(b.Tags)})
		for _, f := range b.Frontends {
			if a, ok := addressOf(f, snapshot); ok {
				at.set(a)
			}
		}
	}
	for _, s := range services {
		if s.Idle {
			continue
		}
		for _, f := range s.Frontends {
			if a, ok := toldOf(f, s, snapshot); ok {
				j.of(Balancer{ID: s.Balancer, Location: location}).add(a)
			}
		}
	}
	return j
}

func (j *Journal) of(b Balancer) *Balancer {
	at := slices.IndexFunc(j.Balancers, func(has Balancer) bool { return has.ID.Key() == b.ID.Key() })
	if at < 0 {
		at = len(j.Balancers)
		j.Balancers = append(j.Balancers, b)
	}
	return &j.Balancers[at]
}

// add skips a recorded frontend or public IP.
func (b *Balancer) add(a Address) {
	for _, has := range b.Addresses {
		if strings.EqualFold(has.Frontend, a.Frontend) || a.PublicIP != "" && strings.EqualFold(has.PublicIP, a.PublicIP) {
			return
		}
	}
	b.Addresses = append(b.Addresses, a)
}

// set replaces entries with the same frontend or address.
func (b *Balancer) set(a Address) {
	same := func(has Address) bool {
		return strings.EqualFold(has.Frontend, a.Frontend) || a.PublicIP != "" && strings.EqualFold(has.PublicIP, a.PublicIP) ||
			a.PublicIP == "" && has.IP == a.IP && strings.EqualFold(has.Subnet, a.Subnet)
	}
	at := slices.IndexFunc(b.Addresses, same)
	if at < 0 {
		b.Addresses = append(b.Addresses, a)
		return
	}
	if was := b.Addresses[at]; !a.IP.IsValid() && strings.EqualFold(was.PublicIP, a.PublicIP) {
		a.IP = was.IP // currently not shown
	}
	later := slices.DeleteFunc(slices.Clone(b.Addresses[at+1:]), same)
	b.Addresses = append(append(b.Addresses[:at], a), later...)
}

func addressOf(f lb.Frontend, snapshot Seen) (Address, bool) {
	a := Address{Frontend: f.Name, Family: f.Family, IP: f.PrivateIP, Subnet: f.Subnet}
	if f.PublicIP != "" {
		ip, found := snapshot.publicIP(f.PublicIP)
		a = Address{Frontend: f.Name, Family: ip.Family, IP: ip.Address, PublicIP: f.PublicIP}
		return a, found
	}
	return a, f.Subnet != "" && f.PrivateIP.IsValid()
}

// toldOf is for frontends that no load balancer has. It returns false if there is no address to
// keep.
func toldOf(f lb.Frontend, s Service, snapshot Seen) (Address, bool) {
	at := slices.IndexFunc(s.Shown, f.Family.Of)
	if at < 0 {
		return Address{}, false
	}
	a := Address{Frontend: f.Name, Family: f.Family, IP: s.Shown[at], PublicIP: f.PublicIP, Subnet: f.Subnet, Told: true}
	if f.PublicIP != "" {
		ip, found := snapshot.publicIP(f.PublicIP)
		return a, found && ip.SKU == lb.Basic && ip.UsedBy == "" && ip.Address == a.IP
	}
	_, exists := snapshot.balancer(s.Balancer)
	public := slices.ContainsFunc(snapshot.PublicIPs, func(ip lb.PublicIP) bool { return ip.Address == a.IP }) // the Service was not internal before
	return a, f.Subnet != "" && !exists && !public && !snapshot.has(f, a.IP) && (!f.Static || f.PrivateIP == a.IP)
}

// Misses reports whether a Service shows an address without a frontend.
func (s Seen) Misses(of Service) bool {
	return slices.ContainsFunc(of.Frontends, func(f lb.Frontend) bool {
		at := slices.IndexFunc(of.Shown, f.Family.Of)
		return at >= 0 && !s.has(f, of.Shown[at])
	})
}

func (s Seen) has(f lb.Frontend, shown netip.Addr) bool {
	return slices.ContainsFunc(s.Balancers, func(b lb.LoadBalancer) bool {
		return slices.ContainsFunc(b.Frontends, func(is lb.Frontend) bool {
			return strings.EqualFold(is.Name, f.Name) || f.PublicIP != "" && strings.EqualFold(is.PublicIP, f.PublicIP) ||
				f.PublicIP == "" && is.PrivateIP.IsValid() && is.PrivateIP == shown
		})
	})
}

func (s Seen) publicIP(id string) (lb.PublicIP, bool) {
	at := slices.IndexFunc(s.PublicIPs, func(ip lb.PublicIP) bool { return strings.EqualFold(ip.ID.String(), id) })
	if at < 0 {
		return lb.PublicIP{}, false
	}
	return s.PublicIPs[at], true
}

func (s Seen) balancer(id lb.LoadBalancerID) (lb.LoadBalancer, bool) {
	at := slices.IndexFunc(s.Balancers, func(b lb.LoadBalancer) bool { return b.ID.Key() == id.Key() })
	if at < 0 {
		return lb.LoadBalancer{}, false
	}
	return s.Balancers[at], true
}

func (s Seen) basic() []lb.LoadBalancer {
	return slices.DeleteFunc(slices.Clone(s.Balancers), func(b lb.LoadBalancer) bool { return b.SKU != lb.Basic })
}
