// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"strings"
)

// SKU is the tier of a load balancer or a public IP.
type SKU string

// The SKUs. Azure takes a resource without one for Basic.
const (
	Standard SKU = "Standard"
	Basic    SKU = "Basic"
)

// MaxFrontends is how many frontends a Standard load balancer has at most.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer
const MaxFrontends = 600

// MaxMachineRules is how many load balancing and inbound NAT rules an IP configuration of a network interface has at most,
// of all its load balancers together.
// https://learn.microsoft.com/azure/load-balancer/load-balancer-common-deployment-errors
const MaxMachineRules = 299

// LoadBalancer is a load balancer as Azure shows it, or as it shall become. The parts
// refer to each other by name.
type LoadBalancer struct {
	ID LoadBalancerID
	// Etag is empty if it was never read: it does not exist yet.
	Etag     string
	Location string
	SKU      SKU
	// ExtendedLocation is the edge zone; empty for none.
	ExtendedLocation string
	Tags             map[string]string
	Provisioning     Provisioning

	Frontends []Frontend
	Pools     []Pool
	Probes    []Probe
	Rules     []Rule
	// Pinned are the frontends and pools, by name, that something refers to which is not
	// among Rules: an outbound rule, an inbound NAT rule. They cannot be removed.
	Pinned map[string]bool
	// NATRules counts the inbound NAT rules of each pool, by its name in lower case. Without a name it is the highest
	// number that one network interface has by itself.
	NATRules map[string]int

	// Origin is the adapter's own decoding of what it read. It travels with the load
	// balancer so that a write preserves what Weir does not model; only the adapter that
	// made it looks inside.
	Origin any
}

// RulesTo counts the rules that send flows to a pool.
func (b LoadBalancer) RulesTo(pool string) int {
	n := 0
	for _, r := range b.Rules {
		if strings.EqualFold(r.Pool, pool) {
			n++
		}
	}
	return n
}

// Frontend is a frontend IP configuration: either public or private.
type Frontend struct {
	Name string
	// PublicIP is the ARM id of a public IP; empty for a private frontend.
	PublicIP string
	// Subnet is the ARM id of the subnet of a private frontend.
	Subnet string
	// PrivateIP is the address of a private frontend. If it is not Static, Azure chose
	// it, and it says nothing about what is wanted.
	PrivateIP netip.Addr
	Static    bool
	Family    Family
	Zones     []string
}

// ProbeProtocol is how a probe asks.
type ProbeProtocol string

// The protocols of probes, as Azure spells them.
const (
	ProbeTCP   ProbeProtocol = "Tcp"
	ProbeHTTP  ProbeProtocol = "Http"
	ProbeHTTPS ProbeProtocol = "Https"
)

// Probe is a health probe.
type Probe struct {
	Name     string
	Protocol ProbeProtocol
	Port     int32
	// Path is asked for by HTTP and HTTPS; empty for TCP.
	Path string
	// IntervalSeconds is the time between two probes.
	IntervalSeconds int32
	// Threshold is how many probes in a row change a member's state.
	Threshold int32
}

// Transport is the transport protocol of a rule.
type Transport string

// The transports, as Azure spells them. All is that of a rule for all ports.
const (
	TCP Transport = "Tcp"
	UDP Transport = "Udp"
	All Transport = "All"
)

// Distribution is how a rule spreads flows over members.
type Distribution string

// The distributions that Kubernetes has words for.
const (
	Spread   Distribution = "Default"  // by five-tuple
	SourceIP Distribution = "SourceIP" // by source and destination address
)

// Rule is a load balancing rule.
type Rule struct {
	Name      string
	Transport Transport
	// Frontend, Pool and Probe are names within the load balancer; Probe may be empty.
	Frontend, Pool, Probe string
	// FrontendPort and BackendPort are 0 for all ports.
	FrontendPort, BackendPort int32
	// FloatingIP keeps the frontend's address as the destination at the member.
	FloatingIP  bool
	IdleMinutes int32
	// TCPReset sends a reset when a flow idles out; nil where Azure shows none (UDP).
	TCPReset     *bool
	Distribution Distribution
	// DisableOutboundSNAT keeps members from using the frontend for outbound flows.
	DisableOutboundSNAT bool
}

// PublicIP is a public IP address as Azure shows it, or as it shall become.
type PublicIP struct {
	// ID is its ARM id.
	ID   ResourceID
	Etag string
	// Address is what Azure assigned; the zero Addr if nothing yet.
	Address  netip.Addr
	Location string
	SKU      SKU
	Static   bool
	Family   Family
	Zones    []string
	// Prefix is the ARM id of the public IP prefix that it comes from; empty for none.
	Prefix string
	// IPTags are Azure's IP tags, type to value.
	IPTags map[string]string
	// DNSLabel is the first label of its name; empty for none.
	DNSLabel string
	Tags     map[string]string
	// UsedBy is the ARM id of the IP configuration that has it; empty if it is free.
	UsedBy       string
	Provisioning Provisioning
	Origin       any
}
