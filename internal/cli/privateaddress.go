// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// balancers returns the internal load balancers of the resource group, and those of this cluster.
func (c AddressCommand) balancers(ctx context.Context) (loadBalancers, own []lb.LoadBalancer, err error) {
	loadBalancers, err = c.Azure.ListLoadBalancers(ctx, c.Settings.Place.SubscriptionID, c.Settings.Place.ResourceGroup)
	if err != nil {
		return nil, nil, fmt.Errorf("load balancers of resource group %s: %w", c.Settings.Place.ResourceGroup, err)
	}
	for _, b := range loadBalancers {
		if c.isOwn(b) {
			own = append(own, b)
		}
	}
	return loadBalancers, own, nil
}

func (c AddressCommand) isOwn(b lb.LoadBalancer) bool {
	return slices.ContainsFunc(c.Settings.Configurations, func(conf service.Configuration) bool {
		return strings.EqualFold(service.LoadBalancerName(conf.Name, true), b.ID.Name)
	})
}

// privateRows returns the retained private addresses of load balancers.
func privateRows(balancers []lb.LoadBalancer, cluster string) []addressRow {
	var rows []addressRow
	for _, b := range balancers {
		for _, r := range b.RetainedAddresses() {
			rows = append(rows, newPrivateRow(b, r, cluster))
		}
	}
	return rows
}

func newPrivateRow(b lb.LoadBalancer, r lb.RetainedAddress, cluster string) addressRow {
	row := addressRow{Name: r.Address.String(), ResourceGroup: b.ID.ResourceGroup, Address: r.Address.String(), LoadBalancer: b.ID.Name, Cluster: cluster, Service: r.Service, Since: r.Since}
	if _, _, f, _ := plan.FindRetained([]lb.LoadBalancer{b}, r.Address); f.Name != "" {
		if at := slices.IndexFunc(b.Rules, func(rule lb.Rule) bool { return strings.EqualFold(rule.Frontend, f.Name) }); at >= 0 {
			row.UsedBy = b.ID.String() + "/loadBalancingRules/" + b.Rules[at].Name
		}
	}
	return row
}

// parsePrivate splits names into private addresses and names of public IPs.
func parsePrivate(names []string) (private []netip.Addr, public []string) {
	for _, name := range names {
		if addr, err := netip.ParseAddr(name); err == nil {
			private = append(private, addr)
		} else {
			public = append(public, name)
		}
	}
	return private, public
}

// checkPrivate returns an error if a private address is not retained for this cluster, or in use.
func (c AddressCommand) checkPrivate(own []lb.LoadBalancer, addrs []netip.Addr) error {
	for _, addr := range addrs {
		b, r, f, found := plan.FindRetained(own, addr)
		if !found {
			return fmt.Errorf("no private address %s is retained for cluster %s: weir address list has all; nothing was released", addr, c.ClusterName)
		}
		if err := plan.CheckUnused(b, r, f); err != nil {
			return fmt.Errorf("%w; nothing was released", err)
		}
	}
	return nil
}

// releasePrivate releases a private address that was checked. It reads the load balancer again, because the one before may have
// been on it.
func (c AddressCommand) releasePrivate(ctx context.Context, addr netip.Addr) error {
	_, own, err := c.balancers(ctx)
	if err != nil {
		return err
	}
	if err := c.checkPrivate(own, []netip.Addr{addr}); err != nil {
		return err
	}
	b, r, f, _ := plan.FindRetained(own, addr)
	release := plan.ReleaseAddress(b, r, f, c.DeleteLoadBalancer)
	if err := c.write(ctx, b, release); err != nil {
		return err
	}
	text := fmt.Sprintf("private address %s released\n", addr)
	if len(release.NeededBy) > 0 {
		text = fmt.Sprintf("private address %s is no longer retained; Azure requires its frontend while load balancer %s has %s: Weir deletes it with these\n", addr, b.ID.Name, strings.Join(release.NeededBy, ", "))
	}
	_, err = fmt.Fprint(c.Out, text)
	return err
}

func (c AddressCommand) write(ctx context.Context, b lb.LoadBalancer, r plan.Release) (err error) {
	if r.Delete {
		err = c.Azure.DeleteLoadBalancer(ctx, b)
	} else {
		_, err = c.Azure.PutLoadBalancer(ctx, r.Next)
	}
	if err != nil {
		return fmt.Errorf("load balancer %s: %w", b.ID.Name, err)
	}
	return nil
}

// claimPrivate gives a private address, and all others that were retained for the same Service, to a Service of this cluster.
// Azure cannot move an address between load balancers, so the claim is first recorded on the next one; it can be
// repeated after a failure at any point.
func (c AddressCommand) claimPrivate(ctx context.Context, addr netip.Addr, key string) error {
	balancers, own, err := c.balancers(ctx)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(balancers), c.isOwn)
	from, old, _, isForeign := plan.FindRetained(others, addr)
	to, current, frontend, isOwn := plan.FindRetained(own, addr)
	switch {
	case isForeign && isOwn && frontend.Name != "":
		return fmt.Errorf("private address %s is retained on the load balancers %s and %s: release one", addr, from.ID.Name, to.ID.Name)
	case isOwn && !isForeign:
		from, old = to, current
	case !isForeign:
		return fmt.Errorf("private address %s is not retained on a load balancer of resource group %s: set %s on its Service in its cluster, and delete the Service there first",
			addr, c.Settings.Place.ResourceGroup, service.RetainAddress)
	}
	for _, b := range []lb.LoadBalancer{from, to} {
		if b.Provisioning == lb.Updating {
			return fmt.Errorf("load balancer %s is being updated: repeat the claim later", b.ID.Name)
		}
	}
	key = cmp.Or(key, old.Service)
	if namespace, _, _ := strings.Cut(key, "/"); namespace != old.Namespace() {
		return fmt.Errorf("private address %s was retained for %s, and only Services of its namespace may claim it", addr, service.DescribeOwner(old.Service))
	}
	changed := isForeign || frontend.Name == "" || key != old.Service
	if changed {
		if err := c.move(ctx, own, from, old.Service, key, isForeign); err != nil {
			return err
		}
	}
	return c.printClaim(addressRow{Name: addr.String(), ResourceGroup: c.Settings.Place.ResourceGroup, Address: addr.String(), LoadBalancer: c.target(own, addr).ID.Name, Cluster: c.ClusterName, Service: key, Since: old.Since},
		"load balancer "+from.ID.Name, old.Service, changed)
}

// target returns the load balancer that gets an address: the one with its tag, otherwise the first one.
func (c AddressCommand) target(own []lb.LoadBalancer, addr netip.Addr) lb.LoadBalancer {
	if b, _, _, found := plan.FindRetained(own, addr); found {
		return b
	}
	id := c.Settings.Place
	id.Name = service.LoadBalancerName(c.Settings.Configurations[0].Name, true)
	for _, b := range own {
		if strings.EqualFold(b.ID.Name, id.Name) {
			return b
		}
	}
	return lb.LoadBalancer{ID: id, Location: c.Settings.Location, SKU: lb.Standard, Tags: maps.Clone(c.Settings.Tags)}
}

// move records the claim, frees the addresses of a Service on the former load balancer, and takes them on the next one.
// They move together, because with IPv6 frontends Azure requires one of IPv4.
func (c AddressCommand) move(ctx context.Context, own []lb.LoadBalancer, from lb.LoadBalancer, former, key string, isForeign bool) error {
	addresses := from.RetainedAddresses()
	addresses = slices.DeleteFunc(addresses, func(r lb.RetainedAddress) bool { return r.Service != former })
	slices.SortFunc(addresses, func(a, b lb.RetainedAddress) int { return b.Address.Compare(a.Address) }) // IPv6 leaves first
	to, release := c.target(own, addresses[0].Address), plan.Release{Next: from}
	recorded, taken := to, lb.LoadBalancer{}
	for _, r := range addresses {
		_, _, f, _ := plan.FindRetained([]lb.LoadBalancer{from}, r.Address)
		if err := plan.CheckUnused(from, r, f); err != nil {
			return err
		}
		release = plan.ReleaseAddress(release.Next, r, f, c.DeleteLoadBalancer)
		r.Service = key
		recorded = plan.ReserveAddress(recorded, r, "")
	}
	switch {
	case isForeign && len(release.NeededBy) > 0:
		return fmt.Errorf("load balancer %s has no other frontend, and Azure requires one for %s: --delete-load-balancer deletes it with these", from.ID.Name, strings.Join(release.NeededBy, ", "))
	case len(recorded.Tags) > lb.MaxTags:
		return fmt.Errorf("load balancer %s would have %d tags, and Azure allows %d: release some addresses first", to.ID.Name, len(recorded.Tags), lb.MaxTags)
	case to.SKU != lb.Standard:
		return fmt.Errorf("load balancer %s is of SKU %s, and Weir writes Standard ones only", to.ID.Name, to.SKU)
	case c.DryRun:
		return nil
	}
	recorded, err := c.put(ctx, recorded)
	if err != nil {
		return err
	}
	if isForeign {
		if err := c.write(ctx, from, release); err != nil {
			return err
		}
	}
	taken = recorded
	for _, r := range recorded.RetainedAddresses() {
		if _, _, f, _ := plan.FindRetained([]lb.LoadBalancer{recorded}, r.Address); f.Name == "" && r.Service == key {
			taken = plan.ReserveAddress(taken, r, c.Settings.VirtualNetwork+"/subnets/"+r.Subnet)
		}
	}
	if len(taken.Frontends) == len(recorded.Frontends) {
		return nil
	}
	if _, err := c.put(ctx, taken); err != nil {
		return fmt.Errorf("%w; the addresses of %s are recorded on load balancer %s, and Azure may assign them to others until the claim is repeated", err, service.DescribeOwner(key), to.ID.Name)
	}
	return nil
}

func (c AddressCommand) put(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	b, err := c.Azure.PutLoadBalancer(ctx, b)
	if err != nil {
		return b, fmt.Errorf("load balancer %s: %w", b.ID.Name, err)
	}
	return b, nil
}

func (c AddressCommand) printClaim(row addressRow, from, former string, changed bool) error {
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(claimedAddress{row, "", former, changed, c.DryRun})
	}
	_, err := fmt.Fprintf(c.Out, "private address %s %s for %s of cluster %s; it was of %s on %s\n", row.Address, c.claimVerb(changed), service.DescribeOwner(row.Service), row.Cluster, service.DescribeOwner(former), from)
	return err
}
