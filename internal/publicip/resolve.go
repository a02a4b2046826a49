// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// mostMade bounds the public IPs that are made for one Service and family: another one is made where others
// keep the first on another load balancer.
const mostMade = 9

// namesMade returns the names of the public IPs of a family that are made for a Service, the usual one first.
// The Azure cloud provider, and Weir before it, gave that of IPv6 no suffix where a Service had IPv6 alone: it
// keeps that name, and IPv4 gets another one.
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

// madeRule is what follows the name of the cluster in the names of public IPs that are made for Services. As any
// name it may come back from Azure in other capitals.
var madeRule = regexp.MustCompile(`(?i)^(a[0-9a-f]{1,31})(-IPv[46](-[2-9])?)?$`)

// MadeFor returns the owner whose public IP this is; empty if Weir, or the Azure cloud
// provider before it, did not make it.
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

// resolve returns what a frontend wants of public IPs with the name of the one that it gets. elsewhere reports
// whether others keep one on another load balancer.
func resolve(want service.PublicIP, known map[string]lb.PublicIP, elsewhere func(lb.PublicIP) bool) service.PublicIP {
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
		return managed(want, known, elsewhere)
	case !found && (want.Family == lb.IPv4 || !want.Pair):
		return want
	}
	next := managed(want, known, elsewhere)
	if _, has := known[next.ID.Key()]; has || want.Pair {
		return next
	}
	return want // nothing is taken from the Service by a refusal
}

// managed returns what a frontend wants with the name of the public IP that is made for it: the one that it has, or
// the first name that is free.
func managed(want service.PublicIP, known map[string]lb.PublicIP, elsewhere func(lb.PublicIP) bool) service.PublicIP {
	want.Named = false
	var used, exists, free string
	for _, name := range namesMade(want) {
		want.ID.Name = name
		switch ip, found := known[want.ID.Key()]; {
		case !found:
			free = cmp.Or(free, name)
		case ip.Family != want.Family || elsewhere(ip):
		case ip.UsedBy != "":
			used = cmp.Or(used, name)
		default:
			exists = cmp.Or(exists, name)
		}
	}
	want.ID.Name = cmp.Or(used, exists, free, namesMade(want)[0])
	return want
}

// prefixOf reports whether a prefix is known to be of another family than this one.
func prefixOf(known map[string]lb.PublicIP, prefix string, family lb.Family) bool {
	for _, ip := range known {
		if strings.EqualFold(ip.Prefix, prefix) && ip.Family != family {
			return true
		}
	}
	return false
}

// Gets reports whether a Service has a public IP once it has what it wants.
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

// spares reports whether a public IP stays for a Service: it gets it, or one of its family that is made for it. An
// address whose family is wanted is never given up for another name.
func (r *Round) spares(req *Request, ip lb.PublicIP) bool {
	return req.Desired != nil && (!req.DeleteUnused || !r.isUnused(req, ip)) && slices.ContainsFunc(req.Desired.Frontends, func(f service.Frontend) bool {
		return f.PublicIP != nil && mayWant(r.resolve(*f.PublicIP, req), ip)
	})
}

// resolve is resolve of what the round knows.
func (r *Round) resolve(want service.PublicIP, req *Request) service.PublicIP {
	return resolve(want, r.known, func(ip lb.PublicIP) bool {
		return r.cfg.Shared != nil && ip.UsedBy != "" && !hasPrefixFold(ip.UsedBy, r.on.String()+"/") && r.cfg.frontendOf(ip) != "" && r.cfg.Shared(ip, req.Owner)
	})
}

// Wants reports whether a public IP is one that a Service may get.
func Wants(spec *service.Spec, ip lb.PublicIP) bool {
	return spec != nil && slices.ContainsFunc(spec.Frontends, func(f service.Frontend) bool {
		return f.PublicIP != nil && mayWant(*f.PublicIP, ip)
	})
}

// mayWant reports whether a public IP is one that a frontend may get.
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

// SharedOn reports whether another Service than an owner has a rule at the frontend that has a public IP.
func SharedOn(balancers map[string]lb.LoadBalancer, ip lb.PublicIP, owner string) bool {
	for _, b := range balancers {
		at := slices.IndexFunc(b.Frontends, func(f lb.Frontend) bool { return strings.EqualFold(f.PublicIP, ip.ID.String()) })
		if at >= 0 && slices.ContainsFunc(b.Rules, func(r lb.Rule) bool {
			return strings.EqualFold(r.Frontend, b.Frontends[at].Name) && !hasPrefixFold(r.Name, owner)
		}) {
			return true
		}
	}
	return false
}
