// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"net/http"
	"strings"
)

const usagesSegment = "usages"

const (
	standardIPv4 = "IPv4StandardSkuPublicIpAddresses"
	standardIPv6 = "IPv6StandardSkuPublicIpAddresses"
)

func (e *Emulator) countUsage(subscription, location string) map[string]int {
	n := map[string]int{}
	for _, agg := range e.aggregates {
		if !sameName(agg.id.subscription, subscription) || !sameName(stringField(agg.body, "location"), location) {
			continue
		}
		switch agg.id.root {
		case publicIPKind:
			n["PublicIPAddresses"]++
			n[usageName(agg.body)]++
			if isStatic(propertyFields(agg.body)) {
				n["StaticPublicIPAddresses"]++
			}
		case loadBalancerKind:
			n["LoadBalancers"]++
			if sameName(skuName(agg.body), "Standard") {
				n["StandardSkuLoadBalancers"]++
			}
		}
	}
	return n
}

func usageName(body fields) string {
	switch {
	case !sameName(skuName(body), "Standard"):
		return ""
	case strings.EqualFold(stringField(propertyFields(body), "publicIPAddressVersion"), "IPv6"):
		return standardIPv6
	}
	return standardIPv4
}

func (e *Emulator) serveUsages(x *exchange) *Problem {
	r := x.route
	n := e.countUsage(r.subscription, r.location)
	values := []any{}
	for _, of := range []struct {
		name, text string
		limit      int
	}{
		{"StaticPublicIPAddresses", "Static Public IP Addresses", maxPublicIPs},
		{"PublicIPAddresses", "Public IP Addresses", maxPublicIPs},
		{"LoadBalancers", "Load Balancers", maxLoadBalancers},
		{"StandardSkuLoadBalancers", "Standard Sku Load Balancers", maxLoadBalancers},
		{standardIPv4, "Public IPv4 Addresses - Standard", cmp.Or(e.opts.MaxStandardIPs, maxPublicIPs)},
		{standardIPv6, "Public IPv6 Addresses - Standard", cmp.Or(e.opts.MaxStandardIPs, maxPublicIPs)},
	} {
		values = append(values, fields{
			"id":           "/subscriptions/" + r.subscription + "/providers/" + network + "/locations/" + r.location + "/" + usagesSegment + "/" + of.name,
			"unit":         "Count",
			"currentValue": n[of.name],
			"limit":        of.limit,
			"name":         fields{"value": of.name, "localizedValue": of.text},
		})
	}
	x.done, x.status, x.body = true, http.StatusOK, fields{"value": values}
	return nil
}
