// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"net/http"
	"strings"
)

// usagesOf is the last part of the path at which a region's usages are listed.
const usagesOf = "usages"

// Under these names Standard public IP addresses count.
const (
	standardIPv4 = "IPv4StandardSkuPublicIpAddresses"
	standardIPv6 = "IPv6StandardSkuPublicIpAddresses"
)

// used is how many public IP addresses and load balancers a subscription has in a region, by Azure's names of the limits.
func (e *Emulator) used(subscription, location string) map[string]int {
	n := map[string]int{}
	for _, agg := range e.aggregates {
		if !sameName(agg.id.subscription, subscription) || !sameName(text(agg.body, "location"), location) {
			continue
		}
		switch agg.id.root {
		case publicIPKind:
			n["PublicIPAddresses"]++
			n[usedAs(agg.body)]++
			if isStatic(properties(agg.body)) {
				n["StaticPublicIPAddresses"]++
			}
		case loadBalancerKind:
			n["LoadBalancers"]++
			if sameName(sku(agg.body), "Standard") {
				n["StandardSkuLoadBalancers"]++
			}
		}
	}
	return n
}

// usedAs is under which name a public IP address counts, if it is Standard.
func usedAs(body fields) string {
	switch {
	case !sameName(sku(body), "Standard"):
		return ""
	case strings.EqualFold(text(properties(body), "publicIPAddressVersion"), "IPv6"):
		return standardIPv6
	}
	return standardIPv4
}

// usages answers how much of its limits a subscription uses in a region.
func (e *Emulator) usages(x *exchange) *Problem {
	r := x.route
	n := e.used(r.subscription, r.location)
	values := []any{}
	for _, of := range []struct {
		name, says string
		limit      int
	}{
		{"StaticPublicIPAddresses", "Static Public IP Addresses", maxPublicIPs},
		{"PublicIPAddresses", "Public IP Addresses", maxPublicIPs},
		{"LoadBalancers", "Load Balancers", maxLoadBalancers},
		{"StandardSkuLoadBalancers", "Standard Sku Load Balancers", maxLoadBalancers},
		{standardIPv4, "Public IPv4 Addresses - Standard", cmp.Or(e.opts.MostStandardIPs, maxPublicIPs)},
		{standardIPv6, "Public IPv6 Addresses - Standard", cmp.Or(e.opts.MostStandardIPs, maxPublicIPs)},
	} {
		values = append(values, fields{
			"id":           "/subscriptions/" + r.subscription + "/providers/" + network + "/locations/" + r.location + "/" + usagesOf + "/" + of.name,
			"unit":         "Count",
			"currentValue": n[of.name],
			"limit":        of.limit,
			"name":         fields{"value": of.name, "localizedValue": of.says},
		})
	}
	x.done, x.status, x.body = true, http.StatusOK, fields{"value": values}
	return nil
}
