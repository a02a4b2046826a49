// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// OfOthers says of the public IPs that are where a Service looks for its own, and that
// are not its own, whose they are.
func (k *Keeper) OfOthers(ctx context.Context, key, owner string, spec *service.Spec) (map[netip.Addr]string, error) {
	groups := map[string]lb.ResourceID{}
	for _, g := range append([]lb.ResourceID{group(k.cfg.Group)}, groupsOf(spec)...) {
		groups[g.Key()] = g
	}
	whose := map[netip.Addr]string{}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		all, err := k.cfg.Azure.ListPublicIPs(ctx, groups[g].SubscriptionID, groups[g].ResourceGroup)
		if err != nil {
			return nil, fmt.Errorf("public IPs of resource group %s: %w", groups[g].ResourceGroup, err)
		}
		for _, ip := range all {
			if of := k.cfg.whose(ip, key, owner, spec); of != "" && ip.Address.IsValid() {
				whose[ip.Address] = of
			}
		}
	}
	return whose, nil
}

// whose says who has a public IP that a Service may not name as an additional address: the
// cluster's load balancers have it for somebody else, or a machine has. Empty if it may: one
// that is free, or in front of all this.
func (c *Config) whose(ip lb.PublicIP, key, owner string, spec *service.Spec) string {
	tags := strings.Split(lb.Tag(ip.Tags, service.TagService), ",")
	ours := strings.EqualFold(lb.Tag(ip.Tags, service.TagCluster), c.ClusterName)
	switch {
	case Wants(spec, ip):
		return ""
	case ours && tags[0] != "" && !slices.ContainsFunc(tags, func(tag string) bool { return strings.TrimSpace(tag) == key }):
		return "public IP " + ip.ID.Name + ", which was made for Service " + tags[0]
	case strings.Contains(strings.ToLower(ip.UsedBy), "/networkinterfaces/"):
		return "public IP " + ip.ID.Name + ", which a machine has"
	}
	for _, id := range c.LoadBalancers {
		if on := id.String() + "/frontendIPConfigurations/"; hasPrefixFold(ip.UsedBy, on) && !hasPrefixFold(ip.UsedBy, on+owner) {
			return "public IP " + ip.ID.Name + ", which load balancer " + id.Name + " has for others"
		}
	}
	return ""
}
