// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

type formatter struct {
	owners       map[string]string
	placeholders map[netip.Addr]string
}

const assignedByAzure = "(chosen by Azure)"

// formatAddress formats an address; a placeholder as its purpose.
func (fm formatter) formatAddress(text string) string {
	if a, err := netip.ParseAddr(text); err == nil && fm.placeholders[a] != "" {
		return "(the address of " + fm.placeholders[a] + ")"
	}
	return text
}

func (fm formatter) formatAddresses(addresses []string) []string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = fm.formatAddress(a)
	}
	return texts
}

// serviceOf returns a part's Service by its name.
func (fm formatter) serviceOf(name string) string {
	owner, _, _ := strings.Cut(strings.ToLower(name), "-")
	return fm.owners[owner]
}

// fieldValue is omitted if empty, except in pairs.
type fieldValue struct {
	name, text string
	list       []string
	pair       bool
}

func (v fieldValue) textOrNil() *string {
	if v.text == "" && !v.pair {
		return nil
	}
	return &v.text
}

func formatNumber(n int32) string { return strconv.Itoa(int(n)) }

func formatPort(n int32) string {
	if n == 0 {
		return "all"
	}
	return formatNumber(n)
}

// formatTrue omits false.
func formatTrue(value bool) string {
	if value {
		return "true"
	}
	return ""
}

func (fm formatter) frontendFields(f lb.Frontend) []fieldValue {
	private := ""
	switch {
	case f.PublicIP != "":
	case f.Static:
		private = f.PrivateIP.String()
	default:
		private = assignedByAzure
	}
	return []fieldValue{
		{name: "publicIP", text: f.PublicIP}, {name: "subnet", text: f.Subnet}, {name: "privateIP", text: private},
		{name: "zones", text: strings.Join(f.Zones, ", ")}, {name: "gatewayLoadBalancer", text: f.GatewayLoadBalancerID()},
	}
}

func poolFields(p lb.Pool) []fieldValue {
	if p.DrainPeriod() == 0 {
		return nil
	}
	return []fieldValue{{name: "drainSeconds", text: formatNumber(p.DrainPeriod())}}
}

func probeFields(p lb.Probe) []fieldValue {
	return []fieldValue{
		{name: "protocol", text: string(p.Protocol)}, {name: "port", text: formatNumber(p.Port)}, {name: "path", text: p.Path},
		{name: "intervalSeconds", text: formatNumber(p.IntervalSeconds)}, {name: "threshold", text: formatNumber(p.Threshold)},
		{name: "noHealthyBackends", text: string(p.NoHealthyBackends)},
	}
}

func ruleFields(r lb.Rule) []fieldValue {
	reset := ""
	if r.TCPReset != nil {
		reset = strconv.FormatBool(*r.TCPReset)
	}
	return []fieldValue{
		{name: "protocol", text: string(r.Transport)}, {name: "frontend", text: r.Frontend},
		{name: "frontendPort", text: formatPort(r.FrontendPort)}, {name: "pool", text: r.Pool},
		{name: "backendPort", text: formatPort(r.BackendPort)}, {name: "probe", text: r.Probe},
		{name: "floatingIP", text: strconv.FormatBool(r.FloatingIP)}, {name: "idleMinutes", text: formatNumber(r.IdleMinutes)},
		{name: "tcpReset", text: reset}, {name: "distribution", text: string(r.Distribution)},
		{name: "disableOutboundSNAT", text: formatTrue(r.DisableOutboundSNAT)},
		{name: "connectionTracking", text: formatTrue(r.TracksConnections())},
	}
}

func (fm formatter) securityRuleFields(r lb.SecurityRule) []fieldValue {
	return []fieldValue{
		{name: "priority", text: formatNumber(r.Priority)}, {name: "access", text: string(r.Access)},
		{name: "protocol", text: r.Protocol}, {name: "sources", list: r.Sources},
		{name: "destinations", list: fm.formatAddresses(r.Destinations)}, {name: "ports", list: r.DestinationPorts},
	}
}

func (fm formatter) publicIPFields(ip lb.PublicIP, old lb.Provisioning) []fieldValue {
	if ip.Etag == "" {
		return nil
	}
	address := ip.Address.String()
	if fm.placeholders[ip.Address] != "" {
		address = assignedByAzure
	}
	return slices.Concat([]fieldValue{
		{name: "address", text: address}, {name: "family", text: string(ip.Family)},
		{name: "location", text: ip.Location}, {name: "edgeZone", text: ip.ExtendedLocation}, {name: "sku", text: string(ip.SKU)}, {name: "static", text: formatTrue(ip.Static)},
		{name: "zones", text: strings.Join(ip.Zones, ", ")},
		{name: "prefix", text: ip.Prefix}, {name: "dnsLabel", text: ip.DNSLabel},
	}, mapFields("ipTags", ip.IPTags), mapFields("tags", ip.Tags), stateFields(ip.Provisioning, old))
}

func loadBalancerFields(b lb.LoadBalancer, old lb.Provisioning) []fieldValue {
	if b.Etag == "" {
		return nil
	}
	return slices.Concat([]fieldValue{{name: "location", text: b.Location}, {name: "edgeZone", text: b.ExtendedLocation}, {name: "sku", text: string(b.SKU)}}, mapFields("tags", b.Tags), stateFields(b.Provisioning, old))
}

// stateFields is shown after a failed write, which causes a full rewrite.
func stateFields(p, old lb.Provisioning) []fieldValue {
	if old != lb.Failed {
		return nil
	}
	return []fieldValue{{name: "provisioningState", text: string(p)}}
}

func mapFields(field string, fields map[string]string) []fieldValue {
	var values []fieldValue
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		values = append(values, fieldValue{name: field + "." + key, text: fields[key], pair: true})
	}
	return values
}
