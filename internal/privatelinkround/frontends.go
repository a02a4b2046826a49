// SPDX-License-Identifier: Apache-2.0

package privatelinkround

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelink"
)

// Balancer is a load balancer as read from Azure.
type Balancer struct {
	Shown     lb.LoadBalancer
	ByAddress bool
}

type frontend struct {
	privatelink.Frontend
	// owners are in lower case; requests concern the frontend.
	owners []string
	by     []*Request
}

// FrontendID returns the ARM id of a frontend.
func FrontendID(on lb.LoadBalancerID, name string) string {
	return on.String() + "/frontendIPConfigurations/" + name
}

// frontendsOf returns frontends with a requesting Service, or with a Private Link Service owned by
// a requester.
func frontendsOf(b Balancer, requests []*Request, links []lb.PrivateLinkService, settings privatelink.Settings) []frontend {
	if b.Shown.Etag == "" {
		return nil
	}
	six := slices.ContainsFunc(b.Shown.Frontends, func(f lb.Frontend) bool { return familyOf(f, b.Shown.Rules) == lb.IPv6 })
	var all []frontend
	for _, f := range b.Shown.Frontends {
		is := frontend{Frontend: privatelink.Frontend{
			ID: FrontendID(b.Shown.ID, f.Name), Name: f.Name, Family: familyOf(f, b.Shown.Rules), Public: f.PublicIP != "",
			On: privatelink.Balancer{Location: b.Shown.Location, SKU: b.Shown.SKU, ByAddress: b.ByAddress, IPv6: six},
		}}
		for _, r := range b.Shown.Rules {
			if owner := ownerOf(r.Name); strings.EqualFold(r.Frontend, f.Name) && !slices.Contains(is.owners, owner) {
				is.owners = append(is.owners, owner)
			}
		}
		has := privatelink.Ours(is.Frontend, links, settings)
		for _, req := range requests {
			on := slices.Contains(is.owners, strings.ToLower(req.Owner))
			owns := slices.ContainsFunc(has, func(p lb.PrivateLinkService) bool { return privatelink.OwnerOf(p) == req.Service })
			if req.asks() && on && (is.Family == lb.IPv4 || len(req.Desired.Frontends) == 1) || owns || on && len(has) > 0 {
				is.by = append(is.by, req)
			}
		}
		if len(is.by) > 0 {
			all = append(all, is)
		}
	}
	return all
}

// familyOf derives the family of a public frontend from its pool.
func familyOf(f lb.Frontend, rules []lb.Rule) lb.Family {
	if f.Family != "" {
		return f.Family
	}
	if slices.ContainsFunc(rules, func(r lb.Rule) bool {
		return strings.EqualFold(r.Frontend, f.Name) && strings.HasSuffix(strings.ToLower(r.Pool), "-ipv6")
	}) {
		return lb.IPv6
	}
	return lb.IPv4
}

// ownerOf returns the first part of the name, in lower case.
func ownerOf(rule string) string {
	owner, _, _ := strings.Cut(strings.ToLower(rule), "-")
	return owner
}

// ownersBeside returns the owners on the frontends of the requests.
func ownersBeside(shown lb.LoadBalancer, requests []*Request) map[string]bool {
	requesting, frontends := map[string]bool{}, map[string]bool{}
	for _, req := range requests {
		requesting[strings.ToLower(req.Owner)] = true
	}
	for _, r := range shown.Rules {
		if requesting[ownerOf(r.Name)] {
			frontends[strings.ToLower(r.Frontend)] = true
		}
	}
	owners := map[string]bool{}
	for _, r := range shown.Rules {
		if frontends[strings.ToLower(r.Frontend)] {
			owners[ownerOf(r.Name)] = true
		}
	}
	return owners
}

func ownersOf(all []frontend) map[string]bool {
	owners := map[string]bool{}
	for _, f := range all {
		for _, owner := range f.owners {
			owners[owner] = true
		}
	}
	return owners
}

// othersOn counts the Private Link Services of the other frontends.
func othersOn(on lb.LoadBalancerID, f privatelink.Frontend, links []lb.PrivateLinkService) int {
	n, prefix := 0, strings.ToLower(FrontendID(on, ""))
	for _, p := range links {
		if slices.ContainsFunc(p.Frontends, func(id string) bool {
			return strings.HasPrefix(strings.ToLower(id), prefix) && !strings.EqualFold(id, f.ID)
		}) {
			n++
		}
	}
	return n
}
