// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Finding is a result of the preflight checks.
type Finding struct {
	// Reason is machine-readable; Message names the object and the fix.
	Reason, What string
	// Stops is true if this must be fixed before a migration.
	Stops bool
}

// Reasons of findings.
const (
	ForeignRule       = "ForeignRule"
	ForeignFrontend   = "ForeignFrontend"
	NATRule           = "NATRule"
	BroughtPublicIP   = "BroughtPublicIP"
	UnreadPublicIP    = "UnreadPublicIP"
	NodePublicIP      = "NodePublicIP"
	OtherLoadBalancer = "OtherLoadBalancer"
	SecondaryAddress  = "SecondaryAddress"
	NoSecurityGroup   = "NoSecurityGroup"
	NoSecurityRules   = "NoSecurityRules"
	NoWayOut          = "NoWayOut"
	WithoutAddress    = "WithoutAddress"
	LostAddress       = "LostAddress"
	RightMissing      = "RightMissing"
	RightsUnknown     = "RightsUnknown"
	LimitReached      = "LimitReached"
	LimitsUnknown     = "LimitsUnknown"
)

// Terms configures the preflight.
type Terms struct {
	// Pools are the pools of all nodes.
	Pools []string
	// Made reports whether a public IP was created for a Service.
	Made func(lb.PublicIP) bool
	// Brought allows upgrading public IPs of users, which can't be undone.
	Brought bool
	// SecurityGroup is the network security group managed for Services, or "".
	SecurityGroup string
}

// Preflight returns what blocks a migration and what else it changes. Without a blocking finding,
// the migration completes unless another writer interferes.
func Preflight(j Journal, snapshot Seen, services []Service, t Terms) []Finding {
	p := preflight{seen: snapshot, terms: t, owners: map[string]bool{}}
	for _, s := range services {
		p.owners[strings.ToLower(s.Owner)] = true
	}
	for _, b := range snapshot.basic() {
		p.balancer(b)
	}
	for _, b := range j.Balancers {
		for _, a := range b.Addresses {
			p.address(a)
		}
	}
	p.machines()
	p.guards(j)
	p.limits(j, services)
	p.usages(j)
	for _, s := range services {
		if !s.Idle {
			p.service(j, s)
		}
	}
	return p.found
}

type preflight struct {
	seen  Seen
	terms Terms
	found []Finding
	// owners are lower-case prefixes of served Services.
	owners map[string]bool
}

func (p *preflight) note(reason, format string, args ...any) {
	p.found = append(p.found, Finding{Reason: reason, What: fmt.Sprintf(format, args...)})
}

func (p *preflight) stop(reason, format string, args ...any) {
	p.found = append(p.found, Finding{Reason: reason, What: fmt.Sprintf(format, args...), Stops: true})
}

// owned is false for resources of other controllers and clusters, which would not be recreated.
func (p *preflight) owned(name string) bool {
	owner, _, _ := strings.Cut(name, "-")
	return p.owners[strings.ToLower(owner)]
}

func (p *preflight) shares(b lb.LoadBalancer, frontend string) bool {
	return slices.ContainsFunc(b.Rules, func(r lb.Rule) bool { return strings.EqualFold(r.Frontend, frontend) && p.owned(r.Name) })
}

// balancer reports what would not be recreated.
func (p *preflight) balancer(b lb.LoadBalancer) {
	for _, r := range b.Rules {
		if !p.owned(r.Name) {
			p.stop(ForeignRule, "rule %s of load balancer %s belongs to no Service that is served, and would be gone: delete it, or make it on another load balancer", r.Name, b.ID.Name)
		}
	}
	for _, f := range b.Frontends {
		switch {
		case b.Pinned[strings.ToLower(f.Name)]:
			p.stop(NATRule, "an inbound NAT rule of load balancer %s has frontend %s, and would be gone: delete it first", b.ID.Name, f.Name)
		case !p.owned(f.Name) && !p.shares(b, f.Name):
			p.stop(ForeignFrontend, "frontend %s of load balancer %s belongs to no Service that is served: delete it, or make it on another load balancer", f.Name, b.ID.Name)
		}
		if _, found := p.seen.publicIP(f.PublicIP); f.PublicIP != "" && !found {
			p.stop(UnreadPublicIP, "public IP %s of frontend %s cannot be read, so that nobody knows whether its address would stay", f.PublicIP, f.Name)
		}
	}
	for _, pool := range b.Pools {
		if b.Pinned[strings.ToLower(pool.ID.Name)] {
			p.stop(NATRule, "an inbound NAT rule of load balancer %s has pool %s, and would be gone: delete it first", b.ID.Name, pool.ID.Name)
		}
		if len(pool.Addresses) > 0 && !slices.ContainsFunc(p.terms.Pools, func(name string) bool { return strings.EqualFold(name, pool.ID.Name) }) {
			p.stop(ForeignRule, "pool %s of load balancer %s has members, and is not that of the cluster's nodes: empty it first", pool.ID.Name, b.ID.Name)
		}
	}
}

func (p *preflight) address(a Address) {
	ip, found := p.seen.publicIP(a.PublicIP)
	if a.PublicIP == "" || !found || ip.SKU != lb.Basic {
		return
	}
	if !p.terms.Made(ip) && !p.terms.Brought {
		p.stop(BroughtPublicIP, "public IP %s was made by somebody else, and a change to SKU Standard cannot be undone: say that it may be changed", ip.ID.Name)
	}
}

// machines reports what keeps a machine from leaving or joining.
func (p *preflight) machines() {
	managed := p.seen.ours()
	others := map[lb.LoadBalancerKey]bool{}
	for _, b := range p.seen.Others {
		others[b.ID.Key()] = b.SKU == lb.Basic
	}
	member := map[string]bool{} // by interface key
	var members []string
	for _, i := range p.seen.Interfaces {
		if _, leaves := without(i, managed); !leaves {
			continue
		}
		member[i.ID.Key()] = true
		members = append(members, "network interface "+i.ID.Name)
		for _, c := range i.IPConfigurations {
			for _, id := range c.Pools {
				if others[lb.PoolKey(strings.ToLower(id)).LoadBalancer()] {
					p.stop(OtherLoadBalancer, "network interface %s is behind another Basic load balancer, %s, which keeps it from a Standard one", i.ID.Name, id)
				}
			}
		}
	}
	for _, set := range p.seen.ScaleSets {
		members = append(members, "scale set "+set.ID.Name)
		if !set.Uniform {
			continue // all its IP configurations leave
		}
		p.secondary("scale set "+set.ID.Name, set.Interfaces)
		for _, i := range set.Instances {
			p.secondary("instance "+i.ID+" of scale set "+set.ID.Name, i.Interfaces)
		}
	}
	p.wayOut(members)
	for _, ip := range p.seen.PublicIPs {
		at := strings.Index(strings.ToLower(ip.UsedBy), "/ipconfigurations/")
		if ip.SKU == lb.Basic && at > 0 && member[strings.ToLower(ip.UsedBy[:at])] {
			p.stop(NodePublicIP, "public IP %s of network interface %s is Basic, which keeps the machine from a Standard load balancer: upgrade it, or take it away",
				ip.ID.Name, ip.UsedBy[strings.LastIndexByte(ip.UsedBy[:at], '/')+1:at])
		}
	}
}

const mostNamed = 20

// wayOut: unlike a Basic load balancer, a Standard one gives no implicit outbound access.
func (p *preflight) wayOut(machines []string) {
	if len(machines) == 0 {
		return
	}
	p.note(NoWayOut, "%s: unless they have another, they lose their implicit way out to the internet, and the address by which others know them changes: "+
		"have a NAT gateway ready for their subnet, or an outbound rule, which Azure takes once nothing there is Basic", some(machines))
}

// some sorts and shortens.
func some(names []string) string {
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if len(names) > mostNamed {
		text += fmt.Sprintf(" and %d more", len(names)-mostNamed)
	}
	return text
}

func (p *preflight) secondary(of string, interfaces []lb.InterfaceConfiguration) {
	managed := p.seen.ours()
	for _, i := range interfaces {
		for at, c := range i.IPConfigurations {
			first := slices.IndexFunc(i.IPConfigurations, func(o lb.IPConfiguration) bool { return o.Family == c.Family })
			if slices.ContainsFunc(c.Pools, managed.Holds) && (!i.Primary && len(interfaces) > 1 || !c.Primary && at != first) {
				p.stop(SecondaryAddress, "IP configuration %s of %s is in a pool of the load balancer, and is not the primary one: take it out first", c.Name, of)
			}
		}
	}
}

// service reports Services without an address, and those with an address already lost.
func (p *preflight) service(j Journal, s Service) {
	if len(s.Shown) == 0 {
		p.note(WithoutAddress, "Service %s shows no address: what it gets is new", s.Name)
	}
	for _, ip := range s.Shown {
		at := slices.IndexFunc(s.Frontends, func(f lb.Frontend) bool { return f.Family.Of(ip) })
		if at < 0 || s.Frontends[at].PublicIP == "" {
			continue
		}
		kept := slices.ContainsFunc(p.seen.PublicIPs, func(has lb.PublicIP) bool { return has.Address == ip })
		for _, b := range j.Balancers {
			kept = kept || slices.ContainsFunc(b.Addresses, func(a Address) bool { return a.IP == ip })
		}
		if !kept {
			p.note(LostAddress, "Service %s shows %s, which no public IP has: it is lost already", s.Name, ip)
		}
	}
}
