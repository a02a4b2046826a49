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

// MaxFrontends is the limit of a Standard load balancer.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer
const MaxFrontends = 600

// MaxMachineRules is the limit of load balancing and inbound NAT rules per IP configuration of a
// network interface, over all its load balancers.
// https://learn.microsoft.com/azure/load-balancer/load-balancer-common-deployment-errors
const MaxMachineRules = 299

// MaxAvailabilitySets is the limit of availability sets with machines in a pool of network interfaces. A machine in
// no set counts as one.
// https://learn.microsoft.com/azure/load-balancer/load-balancer-common-deployment-errors
const MaxAvailabilitySets = 150

// LoadBalancer is an Azure load balancer, observed or desired. Children refer to each other by
// name.
type LoadBalancer struct {
	ID LoadBalancerID
	// Etag is empty for a new load balancer.
	Etag     string
	Location string
	SKU      SKU
	// Global is set for the tier Global: its pools hold frontends of other load balancers.
	Global bool
	// ExtendedLocation is the edge zone; may be empty.
	ExtendedLocation string
	Tags             map[string]string
	Provisioning     Provisioning

	Frontends []Frontend
	Pools     []Pool
	Probes    []Probe
	Rules     []Rule
	// Pinned are names of frontends and pools that outbound rules, inbound NAT rules or others use.
	// They cannot be removed.
	Pinned map[string]bool
	// NATRules counts inbound NAT rules by lower-case pool name. The entry "" is the maximum for
	// one network interface.
	NATRules map[string]int

	// Origin is the document that was read, from which a write retains unmodeled properties.
	Origin any
}

// CountRules counts the rules that refer to a pool.
func (b LoadBalancer) CountRules(pool string) int {
	n := 0
	for _, r := range b.Rules {
		if strings.EqualFold(r.Pool, pool) {
			n++
		}
	}
	return n
}

// HealthPorts returns, by lower-case pool name, the port that the probes of all rules of a pool request by HTTP. It is
// 0 if a rule has no such probe, the ports differ, all members count as up while none is, or others use the pool as
// well.
func (b LoadBalancer) HealthPorts() map[string]int32 {
	probes := make(map[string]int32, len(b.Probes))
	for _, p := range b.Probes {
		if name := strings.ToLower(p.Name); p.Protocol == ProbeHTTP && p.NoHealthyBackends != AllProbedUp {
			probes[name] = p.Port
		}
	}
	ports := make(map[string]int32, len(b.Pools))
	for _, r := range b.Rules {
		pool, port := strings.ToLower(r.Pool), probes[strings.ToLower(r.Probe)]
		if before, other := ports[pool]; other && before != port || b.Pinned[pool] {
			port = 0
		}
		ports[pool] = port
	}
	return ports
}

// Frontend is a frontend IP configuration, public or private.
type Frontend struct {
	Name string
	// PublicIP is an ARM ID; empty for a private frontend.
	PublicIP string
	Subnet   string
	// PrivateIP is assigned by Azure unless Static.
	PrivateIP netip.Addr
	Static    bool
	Family    Family
	Zones     []string
	// GatewayLoadBalancer is the ARM ID of the frontend of a gateway load balancer that the flows pass first; empty for
	// none. It is nil if Azure shows none, or if the desired frontend keeps the observed one.
	GatewayLoadBalancer *string
}

// GatewayLoadBalancerID returns the ID of the frontend of the gateway load balancer; empty for none.
func (f Frontend) GatewayLoadBalancerID() string {
	if f.GatewayLoadBalancer == nil {
		return ""
	}
	return *f.GatewayLoadBalancer
}

// ProbeProtocol is the protocol of a health probe.
type ProbeProtocol string

// Probe protocols in Azure's spelling.
const (
	ProbeTCP   ProbeProtocol = "Tcp"
	ProbeHTTP  ProbeProtocol = "Http"
	ProbeHTTPS ProbeProtocol = "Https"
)

// NoHealthyBackends is the noHealthyBackendsBehavior of a probe.
type NoHealthyBackends string

// The behaviors if no member is up. AllProbedDown is Azure's default.
const (
	AllProbedDown NoHealthyBackends = "AllProbedDown" // no member gets new flows
	AllProbedUp   NoHealthyBackends = "AllProbedUp"   // all members do
)

// Probe is a health probe.
type Probe struct {
	Name            string
	Protocol        ProbeProtocol
	Port            int32
	Path            string
	IntervalSeconds int32
	// Threshold is the number of consecutive results that change a member's state.
	Threshold int32
	// NoHealthyBackends is empty if Azure shows none, or if the desired probe keeps the observed one.
	NoHealthyBackends NoHealthyBackends
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
	// Probe may be empty.
	Frontend, Pool, Probe string
	// FrontendPort and BackendPort are 0 for all.
	FrontendPort, BackendPort int32
	// FloatingIP delivers packets with the frontend's address as destination.
	FloatingIP  bool
	IdleMinutes int32
	// TCPReset is nil if Azure shows none (UDP).
	TCPReset            *bool
	Distribution        Distribution
	DisableOutboundSNAT bool
	// ConnectionTracking is nil if Azure shows none, or if the desired rule keeps the observed one.
	ConnectionTracking *bool
}

// TracksConnections reports whether connection tracking is enabled.
func (r Rule) TracksConnections() bool { return r.ConnectionTracking != nil && *r.ConnectionTracking }

// PublicIP is a public IP address, observed or desired.
type PublicIP struct {
	ID   ResourceID
	Etag string
	// Address is zero until Azure assigns one.
	Address  netip.Addr
	Location string
	SKU      SKU
	// Global is set for the tier Global, which only a Global load balancer uses.
	Global bool
	Static bool
	Family Family
	Zones  []string
	Prefix string
	// ExtendedLocation is the edge zone; may be empty.
	ExtendedLocation string
	IPTags           map[string]string
	DNSLabel         string
	Tags             map[string]string
	// UsedBy is the ARM ID of an IP configuration.
	UsedBy       string
	Provisioning Provisioning
	Origin       any
}
