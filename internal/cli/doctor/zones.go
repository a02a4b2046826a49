// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/zones"
)

const zonesPage = "docs/reference/zones.md"

// checkSecurityGroup reads the group of azure.json. Without one, Standard load balancers may be closed.
func (a *Azure) checkSecurityGroup() func(context.Context) []Check {
	group := a.Config.SecurityGroup()
	if group.Name == "" {
		return func(context.Context) []Check {
			return singleResult(Warn, "azure.json names no securityGroupName: Weir opens no security group, and a Standard load balancer is closed until a network security group admits clients",
				"set securityGroupName to the group of the nodes' subnet, or allow the ports of public Services there yourself")
		}
	}
	return a.readCheck("security group "+group.Name, func(ctx context.Context) (_ int, err error) {
		a.group, err = a.Client.GetSecurityGroup(ctx, group)
		return 1, err
	})
}

// checkZones lists the frontends and public IPs without zones in a region that has them.
func (a *Azure) checkZones(ctx context.Context) []Check {
	choice := a.Config.ZoneChoice()
	if choice.IsSet && len(choice.Zones) == 0 {
		return singleResult(OK, "availabilityZones in azure.json requests none", "")
	}
	byRegion, err := azure.ListZones(ctx, a.Client, a.Config.NetworkSubscriptionID())
	if err != nil {
		if ctx.Err() != nil {
			return noResponse(ctx, err)
		}
		if choice.IsSet {
			return singleResult(OK, "availabilityZones in azure.json names the zones; they were not compared with those of the region, which cannot be read: "+err.Error(), "")
		}
		return singleResult(Warn, "the zones of the region are not known, and new public IPs and private frontends get none unless an annotation names them: "+err.Error(),
			"permit Microsoft.Resources/subscriptions/locations/read on the subscription, or set availabilityZones in azure.json; "+zonesPage)
	}
	if a.loadBalancers == nil || a.ips == nil {
		return singleResult(Unknown, "the load balancers and public IP addresses were not read", "")
	}
	if _, err := zones.NewRegion(a.Config.Location, byRegion).Pick(choice); err != nil {
		return singleResult(Fail, err.Error(), zonesPage)
	}
	if found := a.withoutZones(byRegion); len(found) > 0 {
		return singleResult(Warn, "without zones, and so without a guarantee of redundancy: "+humanize.FormatList(found, 10), "zones cannot be added: to have them, delete the Service and create it again, with another address; "+zonesPage)
	}
	return singleResult(OK, "no frontend and no public IP of the load balancers lacks zones that its region has", "")
}

// withoutZones returns the Standard public IPs and private frontends that have no zones though their region has some.
func (a *Azure) withoutZones(byRegion map[string][]string) (found []string) {
	for _, b := range a.loadBalancers {
		hasZones := len(zones.NewRegion(b.Location, byRegion).Zones) > 0
		if !hasZones || b.SKU != lb.Standard || b.ExtendedLocation != "" {
			continue
		}
		for _, f := range b.Frontends {
			if f.PublicIP == "" && f.Subnet != "" && len(f.Zones) == 0 {
				found = append(found, fmt.Sprintf("frontend %s of load balancer %s", f.Name, b.ID.Name))
			}
		}
	}
	for _, ip := range a.ips {
		hasZones := len(zones.NewRegion(ip.Location, byRegion).Zones) > 0
		if hasZones && ip.SKU == lb.Standard && ip.ExtendedLocation == "" && len(ip.Zones) == 0 && strings.Contains(strings.ToLower(ip.UsedBy), "/loadbalancers/") {
			found = append(found, fmt.Sprintf("public IP %s (%s)", ip.ID.Name, ip.Address))
		}
	}
	slices.Sort(found)
	return found
}
