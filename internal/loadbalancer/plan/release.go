// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Release is a load balancer without a retained address.
type Release struct {
	Next lb.LoadBalancer
	// Delete is set if nothing is left on it.
	Delete bool
	// NeededBy names the parts for which Azure requires the frontend, and with it the address: Weir deletes it with them.
	NeededBy []string
}

// FindRetained returns the load balancer with a retained private address, and its frontend; the frontend has no name if
// Azure does not hold it.
func FindRetained(balancers []lb.LoadBalancer, addr netip.Addr) (b lb.LoadBalancer, r lb.RetainedAddress, f lb.Frontend, found bool) {
	for _, b := range balancers {
		for _, r := range b.RetainedAddresses() {
			if r.Address != addr {
				continue
			}
			if at := slices.IndexFunc(b.Frontends, func(f lb.Frontend) bool { return f.PublicIP == "" && f.PrivateIP == addr }); at >= 0 {
				f = b.Frontends[at]
			}
			return b, r, f, true
		}
	}
	return b, r, f, false
}

// CheckUnused returns an error if a Service uses a retained address, or Azure needs its frontend.
func CheckUnused(b lb.LoadBalancer, r lb.RetainedAddress, f lb.Frontend) error {
	rules := rulesOf(b.Rules, f.Name)
	switch {
	case f.Name == "":
		return nil
	case len(rules) > 0:
		return fmt.Errorf("private address %s is in use by rule %s of load balancer %s: delete its Service first", r.Address, rules[0].Name, b.ID.Name)
	case b.Pinned[strings.ToLower(f.Name)]:
		return fmt.Errorf("private address %s is in use: %s of load balancer %s", r.Address, pinnedReason, b.ID.Name)
	}
	return nil
}

// ReleaseAddress releases an unused retained address. If deleteUnused is set, a load balancer is deleted on which only
// pools and probes without a rule are left.
func ReleaseAddress(b lb.LoadBalancer, r lb.RetainedAddress, f lb.Frontend, deleteUnused bool) Release {
	next := cloneLoadBalancer(b)
	lb.UnsetTag(next.Tags, r.TagName())
	if f.Name == "" {
		return Release{Next: next}
	}
	in := Input{Observed: b}
	next.Frontends = slices.DeleteFunc(next.Frontends, func(frontend lb.Frontend) bool { return strings.EqualFold(frontend.Name, f.Name) })
	needed := in.partNames(next)
	isLast := len(next.Frontends) == 0 && len(next.Rules)+len(next.Pinned) == 0 && len(next.RetainedAddresses()) == 0
	switch {
	case isLast && (deleteUnused || len(needed) == 0):
		return Release{Next: next, Delete: true}
	case len(next.Frontends) == 0:
	case !slices.ContainsFunc(next.Frontends, in.mayBeIPv4):
		needed = []string{"IPv6 frontends"}
	default:
		return Release{Next: next}
	}
	next.Frontends = append(next.Frontends, f)
	lb.SetTags(next.Tags, map[string]string{TagRetained: f.Name})
	lb.UnsetTag(next.Tags, tagRetainedFor)
	return Release{Next: next, NeededBy: needed}
}

// ReserveAddress returns a load balancer that retains an address for a Service. With the ID of a subnet it has a frontend for
// it, otherwise only the tag.
func ReserveAddress(b lb.LoadBalancer, r lb.RetainedAddress, subnet string) lb.LoadBalancer {
	next := cloneLoadBalancer(b)
	if next.Tags == nil {
		next.Tags = map[string]string{}
	}
	lb.SetTags(next.Tags, map[string]string{r.TagName(): r.TagValue()})
	if subnet == "" {
		return next
	}
	family := lb.IPv4
	if r.Address.Is6() {
		family = lb.IPv6
	}
	next.Frontends = append(next.Frontends, lb.Frontend{
		Name: r.TagName(), Subnet: subnet, PrivateIP: r.Address, Static: true, Family: family, Zones: r.Zones,
	})
	return next
}
