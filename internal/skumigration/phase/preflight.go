// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Finding is a result of the preflight checks.
type Finding struct {
	// Reason is machine-readable; Message names the object and the fix.
	Reason, Message string
	// IsBlocker is true if this must be fixed before a migration.
	IsBlocker bool
}

// Reasons of findings.
const (
	ReasonForeignRule        = "ForeignRule"
	ReasonForeignFrontend    = "ForeignFrontend"
	ReasonNATRule            = "NATRule"
	ReasonUserPublicIP       = "BroughtPublicIP"
	ReasonPublicIPUnknown    = "UnreadPublicIP"
	ReasonNodePublicIP       = "NodePublicIP"
	ReasonOtherLoadBalancer  = "OtherLoadBalancer"
	ReasonSecondaryAddress   = "SecondaryAddress"
	ReasonNoSecurityGroup    = "NoSecurityGroup"
	ReasonNoSecurityRules    = "NoSecurityRules"
	ReasonNoOutbound         = "NoWayOut"
	ReasonNoAddress          = "WithoutAddress"
	ReasonAddressLost        = "LostAddress"
	ReasonPermissionMissing  = "RightMissing"
	ReasonPermissionsUnknown = "RightsUnknown"
	ReasonLimitReached       = "LimitReached"
	ReasonLimitsUnknown      = "LimitsUnknown"
)

// Options configures the preflight.
type Options struct {
	// NodePools are the pools of all nodes.
	NodePools []string
	// IsManaged reports whether a public IP was created for a Service.
	IsManaged func(lb.PublicIP) bool
	// UpgradeUserPublicIPs allows upgrading public IPs of users, which can't be undone.
	UpgradeUserPublicIPs bool
	// SecurityGroup is the network security group managed for Services, or "".
	SecurityGroup string
}

// RunPreflight returns what blocks a migration and what else it changes. Without a blocking finding,
// the migration completes unless another writer interferes.
func RunPreflight(j Journal, snapshot Snapshot, services []Service, t Options) []Finding {
	p := preflightChecks{snapshot: snapshot, options: t, owners: map[string]bool{}}
	for _, s := range services {
		p.owners[strings.ToLower(s.Owner)] = true
	}
	for _, b := range snapshot.basicLoadBalancers() {
		p.checkLoadBalancer(b)
	}
	for _, b := range j.LoadBalancers {
		for _, a := range b.Addresses {
			p.checkAddress(a)
		}
	}
	p.checkMachines()
	p.checkSecurityGroups(j)
	p.checkLimits(j, services)
	p.checkUsages(j)
	for _, s := range services {
		if !s.Skip {
			p.checkService(j, s)
		}
	}
	return p.findings
}

type preflightChecks struct {
	snapshot Snapshot
	options  Options
	findings []Finding
	// owners are lower-case prefixes of served Services.
	owners map[string]bool
}

func (p *preflightChecks) addWarning(reason, format string, args ...any) {
	p.findings = append(p.findings, Finding{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (p *preflightChecks) addBlocker(reason, format string, args ...any) {
	p.findings = append(p.findings, Finding{Reason: reason, Message: fmt.Sprintf(format, args...), IsBlocker: true})
}

// isServed is false for resources of other controllers and clusters, which would not be recreated.
func (p *preflightChecks) isServed(name string) bool {
	owner, _, _ := strings.Cut(name, "-")
	return p.owners[strings.ToLower(owner)]
}

func (p *preflightChecks) isShared(b lb.LoadBalancer, frontend string) bool {
	return slices.ContainsFunc(b.Rules, func(r lb.Rule) bool { return strings.EqualFold(r.Frontend, frontend) && p.isServed(r.Name) })
}

// checkLoadBalancer reports what would not be recreated.
func (p *preflightChecks) checkLoadBalancer(b lb.LoadBalancer) {
	for _, r := range b.Rules {
		if !p.isServed(r.Name) {
			p.addBlocker(ReasonForeignRule, "rule %s of load balancer %s belongs to no served Service, and would be lost: delete it, or create it on another load balancer", r.Name, b.ID.Name)
		}
	}
	for _, f := range b.Frontends {
		switch {
		case b.Pinned[strings.ToLower(f.Name)]:
			p.addBlocker(ReasonNATRule, "an inbound NAT rule of load balancer %s has frontend %s, and would be lost: delete it first", b.ID.Name, f.Name)
		case !p.isServed(f.Name) && !p.isShared(b, f.Name):
			p.addBlocker(ReasonForeignFrontend, "frontend %s of load balancer %s belongs to no Service that is served: delete it, or make it on another load balancer", f.Name, b.ID.Name)
		}
		if _, found := p.snapshot.findPublicIP(f.PublicIP); f.PublicIP != "" && !found {
			p.addBlocker(ReasonPublicIPUnknown, "public IP %s of frontend %s cannot be read, so it is unknown whether its address would be kept", f.PublicIP, f.Name)
		}
	}
	for _, pool := range b.Pools {
		if b.Pinned[strings.ToLower(pool.ID.Name)] {
			p.addBlocker(ReasonNATRule, "an inbound NAT rule of load balancer %s has pool %s, and would be lost: delete it first", b.ID.Name, pool.ID.Name)
		}
		if len(pool.Addresses) > 0 && !slices.ContainsFunc(p.options.NodePools, func(name string) bool { return strings.EqualFold(name, pool.ID.Name) }) {
			p.addBlocker(ReasonForeignRule, "pool %s of load balancer %s has members, and is not that of the cluster's nodes: empty it first", pool.ID.Name, b.ID.Name)
		}
	}
}

func (p *preflightChecks) checkAddress(a Address) {
	ip, found := p.snapshot.findPublicIP(a.PublicIP)
	if a.PublicIP == "" || !found || ip.SKU != lb.Basic {
		return
	}
	if !p.options.IsManaged(ip) && !p.options.UpgradeUserPublicIPs {
		p.addBlocker(ReasonUserPublicIP, "public IP %s was not created by Weir, and a change to SKU Standard cannot be undone: allow the change", ip.ID.Name)
	}
}

// checkMachines reports what keeps a machine from leaving or joining.
func (p *preflightChecks) checkMachines() {
	managed := p.snapshot.managedPools()
	others := map[lb.LoadBalancerKey]bool{}
	for _, b := range p.snapshot.Others {
		others[b.ID.Key()] = b.SKU == lb.Basic
	}
	member := map[string]bool{} // by interface key
	var members []string
	for _, i := range p.snapshot.Interfaces {
		if _, leaves := removePools(i, managed); !leaves {
			continue
		}
		member[i.ID.Key()] = true
		members = append(members, "network interface "+i.ID.Name)
		for _, c := range i.IPConfigurations {
			for _, id := range c.Pools {
				if others[lb.PoolKey(strings.ToLower(id)).LoadBalancer()] {
					p.addBlocker(ReasonOtherLoadBalancer, "network interface %s is behind another Basic load balancer, %s, which keeps it from a Standard one", i.ID.Name, id)
				}
			}
		}
	}
	for _, set := range p.snapshot.ScaleSets {
		members = append(members, "scale set "+set.ID.Name)
		if !set.Uniform {
			continue // all its IP configurations leave
		}
		p.checkSecondary("scale set "+set.ID.Name, set.Interfaces)
		for _, i := range set.Instances {
			p.checkSecondary("instance "+i.ID+" of scale set "+set.ID.Name, i.Interfaces)
		}
	}
	p.warnOutbound(members)
	for _, ip := range p.snapshot.PublicIPs {
		at := strings.Index(strings.ToLower(ip.UsedBy), "/ipconfigurations/")
		if ip.SKU == lb.Basic && at > 0 && member[strings.ToLower(ip.UsedBy[:at])] {
			p.addBlocker(ReasonNodePublicIP, "public IP %s of network interface %s is Basic, which keeps the machine from a Standard load balancer: upgrade it, or take it away",
				ip.ID.Name, ip.UsedBy[strings.LastIndexByte(ip.UsedBy[:at], '/')+1:at])
		}
	}
}

const maxNames = 20

// warnOutbound: unlike a Basic load balancer, a Standard one gives no implicit outbound access.
func (p *preflightChecks) warnOutbound(machines []string) {
	if len(machines) == 0 {
		return
	}
	p.addWarning(ReasonNoOutbound, "%s: unless they have another, they lose their implicit way out to the internet, and the address by which others know them changes: "+
		"prepare a NAT gateway for their subnet, or an outbound rule, which Azure accepts once nothing there is Basic", joinNames(machines))
}

// joinNames sorts and shortens.
func joinNames(names []string) string {
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), maxNames)], ", ")
	if len(names) > maxNames {
		text += fmt.Sprintf(" and %d more", len(names)-maxNames)
	}
	return text
}

func (p *preflightChecks) checkSecondary(of string, interfaces []lb.InterfaceConfiguration) {
	managed := p.snapshot.managedPools()
	for _, i := range interfaces {
		for at, c := range i.IPConfigurations {
			first := slices.IndexFunc(i.IPConfigurations, func(o lb.IPConfiguration) bool { return o.Family == c.Family })
			if slices.ContainsFunc(c.Pools, managed.HasPool) && (!i.Primary && len(interfaces) > 1 || !c.Primary && at != first) {
				p.addBlocker(ReasonSecondaryAddress, "IP configuration %s of %s is in a pool of the load balancer, and is not the primary one: take it out first", c.Name, of)
			}
		}
	}
}

// checkService reports Services without an address, and those with an address already lost.
func (p *preflightChecks) checkService(j Journal, s Service) {
	if len(s.Addresses) == 0 {
		p.addWarning(ReasonNoAddress, "Service %s shows no address: what it gets is new", s.Name)
	}
	for _, ip := range s.Addresses {
		at := slices.IndexFunc(s.Frontends, func(f lb.Frontend) bool { return f.Family.Contains(ip) })
		if at < 0 || s.Frontends[at].PublicIP == "" {
			continue
		}
		kept := slices.ContainsFunc(p.snapshot.PublicIPs, func(publicIP lb.PublicIP) bool { return publicIP.Address == ip })
		for _, b := range j.LoadBalancers {
			kept = kept || slices.ContainsFunc(b.Addresses, func(a Address) bool { return a.IP == ip })
		}
		if !kept {
			p.addWarning(ReasonAddressLost, "Service %s shows %s, which no public IP has: it is lost already", s.Name, ip)
		}
	}
}
