// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"strings"
)

// SKU is the tier of a load balancer or a public IP.
type SKU string

// SKUs. Azure's default is Basic.
const (
	Standard SKU = "Standard"
	Basic    SKU = "Basic"
)

// MaxFrontends is the maximum number of frontends of a Standard load balancer.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer
const MaxFrontends = 600

// MaxMachineRules is the maximum number of load balancing and inbound NAT rules per IP
// configuration of a network interface, over all its load balancers.
// https://learn.microsoft.com/azure/load-balancer/load-balancer-common-deployment-errors
const MaxMachineRules = 299

// LoadBalancer is an Azure load balancer, observed or desired. Its children refer to each other by
// name.
type LoadBalancer struct {
	ID LoadBalancerID
	// Etag is empty for a load balancer that was not read and has to be created.
	Etag     string
	Location string
	SKU      SKU
	// ExtendedLocation is the edge zone; may be empty.
	ExtendedLocation string
	Tags             map[string]string
	Provisioning     Provisioning

	Frontends []Frontend
	Pools     []Pool
	Probes    []Probe
	Rules     []Rule
	// Pinned are the names of frontends and pools that resources outside Rules use, e.g. outbound
	// rules and inbound NAT rules. They cannot be removed.
	Pinned map[string]bool
	// NATRules counts inbound NAT rules by lower-case pool name. The entry "" is the highest number
	// that one network interface has directly.
	NATRules map[string]int

	// Origin is the adapter's document that was read. A write uses it to retain properties that
	// Weir does not model.
	Origin any
}

// RulesTo counts the rules that refer to a pool.
func (b LoadBalancer) RulesTo(pool string) int {
	n := 0
	for _, r := range b.Rules {
		if strings.EqualFold(r.Pool, pool) {
			n++
		}
	}
	return n
}

// Frontend is a frontend IP configuration, public or private.
type Frontend struct {
	Name string
	// PublicIP is the ARM ID of a public IP; empty for a private frontend.
	PublicIP string
	// Subnet is the ARM ID of a private frontend's subnet.
	Subnet string
	// PrivateIP is the address of a private frontend. Unless Static, Azure assigned it.
	PrivateIP netip.Addr
	Static    bool
	Family    Family
	Zones     []string
}

// ProbeProtocol is the protocol of a health probe.
type ProbeProtocol string

// Probe protocols in Azure's spelling.
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
	// Path is the HTTP or HTTPS path; empty for TCP.
	Path string
	// IntervalSeconds is the time between two probes.
	IntervalSeconds int32
	// Threshold is the number of consecutive results that change a member's state.
	Threshold int32
}

// Transport is the transport protocol of a rule.
type Transport string

// Transports in Azure's spelling. All is used for rules of all ports.
const (
	TCP Transport = "Tcp"
	UDP Transport = "Udp"
	All Transport = "All"
)

// Distribution is a rule's load distribution mode.
type Distribution string

// Distributions that Kubernetes supports.
const (
	Spread   Distribution = "Default"  // five-tuple
	SourceIP Distribution = "SourceIP" // source and destination address
)

// Rule is a load balancing rule.
type Rule struct {
	Name      string
	Transport Transport
	// Frontend, Pool and Probe are names within the load balancer; Probe may be empty.
	Frontend, Pool, Probe string
	// FrontendPort and BackendPort are 0 for all ports.
	FrontendPort, BackendPort int32
	// FloatingIP delivers packets with the frontend's address as destination.
	FloatingIP  bool
	IdleMinutes int32
	// TCPReset sends a reset on idle timeout; nil if Azure shows none (UDP).
	TCPReset     *bool
	Distribution Distribution
	// DisableOutboundSNAT stops members from using the frontend for outbound flows.
	DisableOutboundSNAT bool
}

// PublicIP is a public IP address, observed or desired.
type PublicIP struct {
	// ID is the ARM ID.
	ID   ResourceID
	Etag string
	// Address is the assigned address; zero until Azure assigns one.
	Address  netip.Addr
	Location string
	SKU      SKU
	Static   bool
	Family   Family
	Zones    []string
	// Prefix is the ARM ID of its public IP prefix; may be empty.
	Prefix string
	// IPTags maps IP tag types to values.
	IPTags map[string]string
	// DNSLabel is the first label of the FQDN; may be empty.
	DNSLabel string
	Tags     map[string]string
	// UsedBy is the ARM ID of the IP configuration that uses it; empty if unused.
	UsedBy       string
	Provisioning Provisioning
	Origin       any
}
