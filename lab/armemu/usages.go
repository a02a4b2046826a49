// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"net/http"
	"strings"
)

// usagesOf is the last path segment of a region's usages.
const usagesOf = "usages"

// Names under which Standard public IP addresses count.
const (
	standardIPv4 = "IPv4StandardSkuPublicIpAddresses"
	standardIPv6 = "IPv6StandardSkuPublicIpAddresses"
)

// used counts public IP addresses and load balancers of a subscription and region, by Azure's name
// of the limit.
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

// usedAs returns the limit's name for a Standard public IP address, else "".
func usedAs(body fields) string {
	switch {
	case !sameName(sku(body), "Standard"):
		return ""
	case strings.EqualFold(text(properties(body), "publicIPAddressVersion"), "IPv6"):
		return standardIPv6
	}
	return standardIPv4
}

// usages serves a subscription's usage of its limits in a region.
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
