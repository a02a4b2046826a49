// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// maxMade limits the public IPs made per Service and family: another one is made if a foreign part retains the
// first on another load balancer.
const maxMade = 9

// managedNames returns the names of a Service's public IPs of a family, default first. cloud-provider-azure and
// earlier versions of Weir used no suffix for an IPv6-only Service: that name is retained, and IPv4 gets
// another one.
func managedNames(want service.PublicIP) []string {
	names := []string{want.ManagedPrefix, want.ManagedPrefix + service.SuffixIPv4}
	if want.Family == lb.IPv6 {
		names = []string{want.ManagedPrefix + service.SuffixIPv6, want.ManagedPrefix}
	}
	for n := 2; n <= maxMade; n++ {
		names = append(names, fmt.Sprintf("%s-%s-%d", want.ManagedPrefix, want.Family, n))
	}
	return names
}

// managedNamePattern matches the name after the cluster name. Azure may change the case.
var managedNamePattern = regexp.MustCompile(`(?i)^(a[0-9a-f]{1,31})(-IPv[46](-[2-9])?)?$`)

// ManagedOwner returns the owner that a public IP was made for; empty if neither Weir nor cloud-provider-azure made
// it, or if it is retained: then it belongs to a namespace, as those that users make.
func ManagedOwner(ip lb.PublicIP, cluster string) (owner string) {
	if isRetained(ip) || !strings.EqualFold(lb.TagValue(ip.Tags, service.TagCluster), cluster) || !hasPrefixFold(ip.ID.Name, cluster+"-") {
		return ""
	}
	match := managedNamePattern.FindStringSubmatch(ip.ID.Name[len(cluster)+1:])
	if match == nil {
		return ""
	}
	return match[1]
}

type addressState int

const (
	available addressState = iota
	serving                // has rules of the Service; only the user gives it up
	occupied               // retained on another load balancer by others, or a port the Service wants is taken
)

func resolveName(want service.PublicIP, known map[string]lb.PublicIP, standingOf func(lb.PublicIP) addressState) service.PublicIP {
	if want.PrefixAnyFamily && prefixOf(known, want.Prefix, want.Family) {
		want.Prefix = ""
	}
	ip, found := known[want.ID.Key()]
	switch {
	case want.Address.IsValid(), want.UserNamed && !want.AnyFamily:
		return want
	case want.UserNamed && found && ip.Family == want.Family:
		want.AnyFamily = false
		return want
	case !want.UserNamed:
		return resolveManaged(want, known, standingOf)
	case !found && (want.Family == lb.IPv4 || !want.Pair):
		return want
	}
	next := resolveManaged(want, known, standingOf)
	if _, ok := known[next.ID.Key()]; ok || want.Pair {
		return next
	}
	return want // the rejection removes nothing from the Service
}

// resolveManaged returns the wanted public IP with the name of the one made for it: the existing one, or the first
// free name.
func resolveManaged(want service.PublicIP, known map[string]lb.PublicIP, standingOf func(lb.PublicIP) addressState) service.PublicIP {
	want.UserNamed = false
	var serves, used, exists, unused string
	for _, name := range managedNames(want) {
		want.ID.Name = name
		ip, found := known[want.ID.Key()]
		if !found {
			unused = cmp.Or(unused, name)
			continue
		}
		switch state := standingOf(ip); {
		case ip.Family != want.Family || state == occupied:
		case state == serving:
			serves = cmp.Or(serves, name)
		case ip.UsedBy != "":
			used = cmp.Or(used, name)
		default:
			exists = cmp.Or(exists, name)
		}
	}
	want.ID.Name = cmp.Or(serves, used, exists, unused, managedNames(want)[0])
	return want
}

func prefixOf(known map[string]lb.PublicIP, prefix string, family lb.Family) bool {
	for _, ip := range known {
		if strings.EqualFold(ip.Prefix, prefix) && ip.Family != family {
			return true
		}
	}
	return false
}

// WillUse reports whether a Service in sync has a public IP.
func (r *Round) WillUse(req *Request, ip lb.PublicIP) bool {
	return req.Desired != nil && slices.ContainsFunc(req.Desired.Frontends, func(f service.Frontend) bool {
		switch {
		case f.PublicIP == nil:
			return false
		case f.PublicIP.Address.IsValid():
			return f.PublicIP.Address == ip.Address
		}
		return r.resolveName(*f.PublicIP, req).ID.Key() == ip.ID.Key()
	})
}

// isWanted reports whether a Service still wants a public IP: it is selected, or made for a wanted family. An
// address of a wanted family is never given up for another name.
func (r *Round) isWanted(req *Request, ip lb.PublicIP) bool {
	return req.Desired != nil && (!req.DeleteUnused || !r.isUnused(req, ip)) && slices.ContainsFunc(req.Desired.Frontends, func(f service.Frontend) bool {
		return f.PublicIP != nil && frontendMayUse(r.resolveName(*f.PublicIP, req), ip)
	})
}

func (r *Round) resolveName(want service.PublicIP, req *Request) service.PublicIP {
	want = resolveName(want, r.known, func(ip lb.PublicIP) addressState { return r.stateOf(ip, want.Family, req) })
	return r.resolveRetained(want, req)
}

func (r *Round) stateOf(ip lb.PublicIP, family lb.Family, req *Request) addressState {
	if r.cfg.RulesAt == nil || ip.UsedBy == "" || r.cfg.frontendOf(ip) == "" {
		return available
	}
	existing := r.cfg.RulesAt(ip)
	others := slices.DeleteFunc(slices.Clone(existing), func(rule lb.Rule) bool { return hasPrefixFold(rule.Name, req.Owner) })
	usedHere := hasPrefixFold(ip.UsedBy, r.on.String()+"/")
	switch {
	case !usedHere && len(others) > 0:
		return occupied
	case usedHere && len(others) < len(existing):
		return serving
	case usedHere && plan.HasPortOf(others, rulesOf(req.Desired, family)):
		return occupied
	}
	return available
}

func rulesOf(spec *service.Spec, family lb.Family) (rules []lb.Rule) {
	if spec == nil {
		return nil
	}
	for _, f := range spec.Frontends {
		for _, rule := range spec.Rules {
			if f.Frontend.Family == family && rule.Frontend == f.Frontend.Name {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// mayHaveMultiple reports whether the load balancer has several public IPs made for one frontend of a Service;
// its rules select one.
func (r *Round) mayHaveMultiple(req *Request) bool {
	return req.Desired != nil && slices.ContainsFunc(req.Desired.Frontends, func(f service.Frontend) bool {
		if f.PublicIP == nil || f.PublicIP.Address.IsValid() {
			return false
		}
		want, count := *f.PublicIP, 0
		for _, name := range managedNames(want) {
			want.ID.Name = name
			if ip, found := r.known[want.ID.Key()]; found && ip.Family == want.Family && hasPrefixFold(ip.UsedBy, r.on.String()+"/") {
				count++
			}
		}
		return count > 1
	})
}

// MayUse reports whether a Service may get a public IP.
func MayUse(spec *service.Spec, ip lb.PublicIP) bool {
	return spec != nil && slices.ContainsFunc(spec.Frontends, func(f service.Frontend) bool {
		return f.PublicIP != nil && frontendMayUse(*f.PublicIP, ip)
	})
}

func frontendMayUse(want service.PublicIP, ip lb.PublicIP) bool {
	if want.Address.IsValid() {
		return want.Address == ip.Address
	}
	if want.UserNamed && want.ID.Key() == ip.ID.Key() {
		return ip.Family == want.Family || !want.AnyFamily
	}
	if want.UserNamed && !want.AnyFamily || ip.Family != want.Family {
		return false
	}
	return want.ID.Key() == ip.ID.Key() || slices.ContainsFunc(managedNames(want), func(name string) bool {
		want.ID.Name = name
		return want.ID.Key() == ip.ID.Key()
	})
}
