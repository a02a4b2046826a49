// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// mostMade limits the public IPs made per Service and family: another one is made if a foreign part retains the
// first on another load balancer.
const mostMade = 9

// namesMade returns the names of a Service's public IPs of a family, default first. cloud-provider-azure and
// earlier versions of Weir used no suffix for an IPv6-only Service: that name is retained, and IPv4 gets
// another one.
func namesMade(want service.PublicIP) []string {
	names := []string{want.Made, want.Made + service.SuffixIPv4}
	if want.Family == lb.IPv6 {
		names = []string{want.Made + service.SuffixIPv6, want.Made}
	}
	for n := 2; n <= mostMade; n++ {
		names = append(names, fmt.Sprintf("%s-%s-%d", want.Made, want.Family, n))
	}
	return names
}

// madeRule matches the name after the cluster name. Azure may change the case.
var madeRule = regexp.MustCompile(`(?i)^(a[0-9a-f]{1,31})(-IPv[46](-[2-9])?)?$`)

// MadeFor returns the owner that a public IP was made for; empty if neither Weir nor cloud-provider-azure made
// it.
func MadeFor(ip lb.PublicIP, cluster string) (owner string) {
	if !strings.EqualFold(lb.Tag(ip.Tags, service.TagCluster), cluster) || !hasPrefixFold(ip.ID.Name, cluster+"-") {
		return ""
	}
	match := madeRule.FindStringSubmatch(ip.ID.Name[len(cluster)+1:])
	if match == nil {
		return ""
	}
	return match[1]
}

type standing int

const (
	available standing = iota
	serving            // has rules of the Service; only the user gives it up
	occupied           // retained on another load balancer by others, or a port the Service wants is taken
)

func resolve(want service.PublicIP, known map[string]lb.PublicIP, standingOf func(lb.PublicIP) standing) service.PublicIP {
	if want.PrefixAnyFamily && prefixOf(known, want.Prefix, want.Family) {
		want.Prefix = ""
	}
	ip, found := known[want.ID.Key()]
	switch {
	case want.Address.IsValid(), want.Named && !want.AnyFamily:
		return want
	case want.Named && found && ip.Family == want.Family:
		want.AnyFamily = false
		return want
	case !want.Named:
		return managed(want, known, standingOf)
	case !found && (want.Family == lb.IPv4 || !want.Pair):
		return want
	}
	next := managed(want, known, standingOf)
	if _, has := known[next.ID.Key()]; has || want.Pair {
		return next
	}
	return want // the rejection removes nothing from the Service
}

// managed returns the wanted public IP with the name of the one made for it: the existing one, or the first
// free name.
func managed(want service.PublicIP, known map[string]lb.PublicIP, standingOf func(lb.PublicIP) standing) service.PublicIP {
	want.Named = false
	var serves, used, exists, unused string
	for _, name := range namesMade(want) {
		want.ID.Name = name
		ip, found := known[want.ID.Key()]
		if !found {
			unused = cmp.Or(unused, name)
			continue
		}
		switch is := standingOf(ip); {
		case ip.Family != want.Family || is == occupied:
		case is == serving:
			serves = cmp.Or(serves, name)
		case ip.UsedBy != "":
			used = cmp.Or(used, name)
		default:
			exists = cmp.Or(exists, name)
		}
	}
	want.ID.Name = cmp.Or(serves, used, exists, unused, namesMade(want)[0])
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

// Gets reports whether a Service in sync has a public IP.
func (r *Round) Gets(req *Request, ip lb.PublicIP) bool {
	return req.Desired != nil && slices.ContainsFunc(req.Desired.Frontends, func(f service.Frontend) bool {
		switch {
		case f.PublicIP == nil:
			return false
		case f.PublicIP.Address.IsValid():
			return f.PublicIP.Address == ip.Address
		}
		return r.resolve(*f.PublicIP, req).ID.Key() == ip.ID.Key()
	})
}

// spares reports whether a public IP is retained for a Service: it is selected, or made for a wanted family. An
// address of a wanted family is never given up for another name.
func (r *Round) spares(req *Request, ip lb.PublicIP) bool {
	return req.Desired != nil && (!req.DeleteUnused || !r.isUnused(req, ip)) && slices.ContainsFunc(req.Desired.Frontends, func(f service.Frontend) bool {
		return f.PublicIP != nil && mayWant(r.resolve(*f.PublicIP, req), ip)
	})
}

func (r *Round) resolve(want service.PublicIP, req *Request) service.PublicIP {
	return resolve(want, r.known, func(ip lb.PublicIP) standing { return r.standingOf(ip, want.Family, req) })
}

func (r *Round) standingOf(ip lb.PublicIP, family lb.Family, req *Request) standing {
	if r.cfg.RulesAt == nil || ip.UsedBy == "" || r.cfg.frontendOf(ip) == "" {
		return available
	}
	existing := r.cfg.RulesAt(ip)
	others := slices.DeleteFunc(slices.Clone(existing), func(rule lb.Rule) bool { return hasPrefixFold(rule.Name, req.Owner) })
	here := hasPrefixFold(ip.UsedBy, r.on.String()+"/")
	switch {
	case !here && len(others) > 0:
		return occupied
	case here && len(others) < len(existing):
		return serving
	case here && plan.HasPortOf(others, rulesOf(req.Desired, family)):
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

// mayHaveSeveral reports whether the load balancer has several public IPs made for one frontend of a Service;
// its rules select one.
func (r *Round) mayHaveSeveral(req *Request) bool {
	return req.Desired != nil && slices.ContainsFunc(req.Desired.Frontends, func(f service.Frontend) bool {
		if f.PublicIP == nil || f.PublicIP.Address.IsValid() {
			return false
		}
		want, here := *f.PublicIP, 0
		for _, name := range namesMade(want) {
			want.ID.Name = name
			if ip, found := r.known[want.ID.Key()]; found && ip.Family == want.Family && hasPrefixFold(ip.UsedBy, r.on.String()+"/") {
				here++
			}
		}
		return here > 1
	})
}

// Wants reports whether a Service may get a public IP.
func Wants(spec *service.Spec, ip lb.PublicIP) bool {
	return spec != nil && slices.ContainsFunc(spec.Frontends, func(f service.Frontend) bool {
		return f.PublicIP != nil && mayWant(*f.PublicIP, ip)
	})
}

func mayWant(want service.PublicIP, ip lb.PublicIP) bool {
	if want.Address.IsValid() {
		return want.Address == ip.Address
	}
	if want.Named && want.ID.Key() == ip.ID.Key() {
		return ip.Family == want.Family || !want.AnyFamily
	}
	if want.Named && !want.AnyFamily || ip.Family != want.Family {
		return false
	}
	return slices.ContainsFunc(namesMade(want), func(name string) bool {
		want.ID.Name = name
		return want.ID.Key() == ip.ID.Key()
	})
}
