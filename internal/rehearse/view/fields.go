// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

type speller struct {
	owners map[string]string
	given  map[netip.Addr]string
}

const chosen = "(chosen by Azure)"

// address formats an address; a placeholder as its purpose.
func (v speller) address(text string) string {
	if a, err := netip.ParseAddr(text); err == nil && v.given[a] != "" {
		return "(the address of " + v.given[a] + ")"
	}
	return text
}

func (v speller) addresses(all []string) []string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = v.address(a)
	}
	return texts
}

// serviceOf returns a part's Service by its name.
func (v speller) serviceOf(name string) string {
	owner, _, _ := strings.Cut(strings.ToLower(name), "-")
	return v.owners[owner]
}

// value is omitted if empty, except in pairs.
type value struct {
	name, text string
	list       []string
	pair       bool
}

func (v value) says() *string {
	if v.text == "" && !v.pair {
		return nil
	}
	return &v.text
}

func number(n int32) string { return strconv.Itoa(int(n)) }

func port(n int32) string {
	if n == 0 {
		return "all"
	}
	return number(n)
}

// yes omits false.
func yes(is bool) string {
	if is {
		return "true"
	}
	return ""
}

func (v speller) frontend(f lb.Frontend) []value {
	private := ""
	switch {
	case f.PublicIP != "":
	case f.Static:
		private = f.PrivateIP.String()
	default:
		private = chosen
	}
	return []value{
		{name: "publicIP", text: f.PublicIP}, {name: "subnet", text: f.Subnet}, {name: "privateIP", text: private},
		{name: "zones", text: strings.Join(f.Zones, ", ")},
	}
}

func probe(p lb.Probe) []value {
	return []value{
		{name: "protocol", text: string(p.Protocol)}, {name: "port", text: number(p.Port)}, {name: "path", text: p.Path},
		{name: "intervalSeconds", text: number(p.IntervalSeconds)}, {name: "threshold", text: number(p.Threshold)},
	}
}

func rule(r lb.Rule) []value {
	reset := ""
	if r.TCPReset != nil {
		reset = strconv.FormatBool(*r.TCPReset)
	}
	return []value{
		{name: "protocol", text: string(r.Transport)}, {name: "frontend", text: r.Frontend},
		{name: "frontendPort", text: port(r.FrontendPort)}, {name: "pool", text: r.Pool},
		{name: "backendPort", text: port(r.BackendPort)}, {name: "probe", text: r.Probe},
		{name: "floatingIP", text: strconv.FormatBool(r.FloatingIP)}, {name: "idleMinutes", text: number(r.IdleMinutes)},
		{name: "tcpReset", text: reset}, {name: "distribution", text: string(r.Distribution)},
		{name: "disableOutboundSNAT", text: yes(r.DisableOutboundSNAT)},
	}
}

func (v speller) securityRule(r lb.SecurityRule) []value {
	return []value{
		{name: "priority", text: number(r.Priority)}, {name: "access", text: string(r.Access)},
		{name: "protocol", text: r.Protocol}, {name: "sources", list: r.Sources},
		{name: "destinations", list: v.addresses(r.Destinations)}, {name: "ports", list: r.DestinationPorts},
	}
}

func (v speller) ofPublicIP(ip lb.PublicIP, was lb.Provisioning) []value {
	if ip.Etag == "" {
		return nil
	}
	address := ip.Address.String()
	if v.given[ip.Address] != "" {
		address = chosen
	}
	return slices.Concat([]value{
		{name: "address", text: address}, {name: "family", text: string(ip.Family)},
		{name: "location", text: ip.Location}, {name: "sku", text: string(ip.SKU)}, {name: "static", text: yes(ip.Static)},
		{name: "zones", text: strings.Join(ip.Zones, ", ")},
		{name: "prefix", text: ip.Prefix}, {name: "dnsLabel", text: ip.DNSLabel},
	}, pairs("ipTags", ip.IPTags), pairs("tags", ip.Tags), state(ip.Provisioning, was))
}

func ofBalancer(b lb.LoadBalancer, was lb.Provisioning) []value {
	if b.Etag == "" {
		return nil
	}
	return slices.Concat([]value{{name: "location", text: b.Location}, {name: "sku", text: string(b.SKU)}}, pairs("tags", b.Tags), state(b.Provisioning, was))
}

// state is shown after a failed write, which causes a full rewrite.
func state(p, was lb.Provisioning) []value {
	if was != lb.Failed {
		return nil
	}
	return []value{{name: "provisioningState", text: string(p)}}
}

func pairs(field string, all map[string]string) []value {
	var values []value
	for _, key := range slices.Sorted(maps.Keys(all)) {
		values = append(values, value{name: field + "." + key, text: all[key], pair: true})
	}
	return values
}
