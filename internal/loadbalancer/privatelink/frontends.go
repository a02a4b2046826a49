// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
)

// LoadBalancer is a load balancer as read from Azure.
type LoadBalancer struct {
	Observed        lb.LoadBalancer
	HasAddressPools bool
}

type frontend struct {
	desired.Frontend
	// owners are in lower case; requests concern the frontend.
	owners   []string
	requests []*Request
}

// FrontendID returns the ARM id of a frontend.
func FrontendID(on lb.LoadBalancerID, name string) string {
	return on.String() + "/frontendIPConfigurations/" + name
}

// findFrontends returns frontends with a requesting Service, or with a Private Link Service owned by
// a requester.
func findFrontends(b LoadBalancer, requests []*Request, links []lb.PrivateLinkService, settings desired.Settings) []frontend {
	if b.Observed.Etag == "" {
		return nil
	}
	six := slices.ContainsFunc(b.Observed.Frontends, func(f lb.Frontend) bool { return frontendFamily(f, b.Observed.Rules) == lb.IPv6 })
	var frontends []frontend
	for _, f := range b.Observed.Frontends {
		front := frontend{Frontend: desired.Frontend{
			ID: FrontendID(b.Observed.ID, f.Name), Name: f.Name, Family: frontendFamily(f, b.Observed.Rules), Public: f.PublicIP != "",
			LoadBalancer: desired.LoadBalancer{Location: b.Observed.Location, ExtendedLocation: b.Observed.ExtendedLocation, SKU: b.Observed.SKU, HasAddressPools: b.HasAddressPools, IPv6: six},
		}}
		for _, r := range b.Observed.Rules {
			if owner := ruleOwner(r.Name); strings.EqualFold(r.Frontend, f.Name) && !slices.Contains(front.owners, owner) {
				front.owners = append(front.owners, owner)
			}
		}
		managed := desired.ManagedLinks(front.Frontend, links, settings)
		for _, req := range requests {
			on := slices.Contains(front.owners, strings.ToLower(req.Owner))
			owns := slices.ContainsFunc(managed, func(p lb.PrivateLinkService) bool { return desired.OwnerOf(p) == req.Service })
			if req.requestsLink() && on && (front.Family == lb.IPv4 || len(req.Desired.Frontends) == 1) || owns || on && len(managed) > 0 {
				front.requests = append(front.requests, req)
			}
		}
		if len(front.requests) > 0 {
			frontends = append(frontends, front)
		}
	}
	return frontends
}

// frontendFamily derives the family of a public frontend from its pool.
func frontendFamily(f lb.Frontend, rules []lb.Rule) lb.Family {
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

// ruleOwner returns the first part of the name, in lower case.
func ruleOwner(rule string) string {
	owner, _, _ := strings.Cut(strings.ToLower(rule), "-")
	return owner
}

// frontendOwners returns the owners on the frontends of the requests.
func frontendOwners(shown lb.LoadBalancer, requests []*Request) map[string]bool {
	requesting, frontends := map[string]bool{}, map[string]bool{}
	for _, req := range requests {
		requesting[strings.ToLower(req.Owner)] = true
	}
	for _, r := range shown.Rules {
		if requesting[ruleOwner(r.Name)] {
			frontends[strings.ToLower(r.Frontend)] = true
		}
	}
	owners := map[string]bool{}
	for _, r := range shown.Rules {
		if frontends[strings.ToLower(r.Frontend)] {
			owners[ruleOwner(r.Name)] = true
		}
	}
	return owners
}

func allOwners(frontends []frontend) map[string]bool {
	owners := map[string]bool{}
	for _, f := range frontends {
		for _, owner := range f.owners {
			owners[owner] = true
		}
	}
	return owners
}

// countOthers counts the Private Link Services of the other frontends.
func countOthers(on lb.LoadBalancerID, f desired.Frontend, links []lb.PrivateLinkService) int {
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
