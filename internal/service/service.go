// SPDX-License-Identifier: Apache-2.0

// Package service computes the load balancer configuration of a Kubernetes Service: frontends, rules, probes,
// pools, public IPs and the load balancer itself. It is pure: it takes Services and settings as values and
// returns the desired state in Azure or the problems of the Service.
//
// Annotations, names and tags are those of cloud-provider-azure, so a Service means the same under both
// (https://cloud-provider-azure.sigs.k8s.io/topics/loadbalancer/).
//
// It also computes the rules of the security group for all Services (BuildSecurityPlan), and what a namespace may use
// (NamespaceSettings, EvaluatePublicIP).
package service

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Service is the relevant part of a Service of type LoadBalancer.
type Service struct {
	Namespace, Name, UID string
	Labels, Annotations  map[string]string
	Ports                []Port
	// Families are spec.ipFamilies, one or two.
	Families []lb.Family
	// Local is true for externalTrafficPolicy Local.
	Local bool
	// HealthCheckNodePort is where kube-proxy reports the health of a Local Service.
	HealthCheckNodePort int32
	// ClientIP is true for session affinity ClientIP.
	ClientIP bool
	// LoadBalancerIP is spec.loadBalancerIP; the annotations of a family take precedence.
	LoadBalancerIP string
	// SourceRanges are spec.loadBalancerSourceRanges.
	SourceRanges []string
	// SharesAddress is true if another Service has or will have its private address.
	SharesAddress bool
	// PoolNames overrides the names of OwnPools if another Service has the usual ones.
	PoolNames []string
}

// Port is a port of a Service.
type Port struct {
	Name        string
	Protocol    string // TCP, UDP or SCTP
	AppProtocol string
	Port        int32
	NodePort    int32 // 0 if not allocated
	// HealthCheckNodePort is that of a Local backend of a Gateway; 0 for none.
	HealthCheckNodePort int32
}

// Settings are the cluster settings.
type Settings struct {
	// ClusterName is the name of the shared pool and the prefix of public IP names.
	ClusterName string
	// PublicIPs is the default location of public IPs; Type and Name are not used.
	PublicIPs lb.ResourceID
	// PrivateLinks is the default location of Private Link Services; Type and Name are not used.
	PrivateLinks lb.ResourceID
	// VirtualNetwork is the ARM ID of the nodes' network. Subnet is the default subnet of private frontends.
	VirtualNetwork, Subnet string
	// Interfaces is true if the members of pools of all nodes are network interfaces. ConvertsPools is true if
	// azure.json sets that kind: pools with the other kind are then converted. Otherwise they retain it; see
	// UsesInterfaces.
	Interfaces, ConvertsPools bool
	// LocalPools selects the pools of Local Services; see UsesOwnPool.
	LocalPools LocalPools
	// SeveralLoadBalancers is true with multipleStandardLoadBalancerConfigurations.
	SeveralLoadBalancers bool
	// SharedProbe is the probe of all Services that are not Local; nil gives each its own.
	SharedProbe *lb.Probe
	// DisableOutboundSNAT keeps members from using frontends for outbound flows.
	DisableOutboundSNAT bool
	// RetainAddresses is the default of the annotation RetainAddress.
	RetainAddresses bool
	// Tags are added to all created resources.
	Tags map[string]string
}

// OwnerName returns the name prefix of a Service's load balancer parts: "a" and the UID without dashes, truncated
// to 32 characters.
func (s Service) OwnerName() string { return OwnerNameOf(s.UID) }

// OwnerNameOf returns the name prefix for a Service UID.
func OwnerNameOf(uid string) string {
	owner := "a" + strings.ReplaceAll(uid, "-", "")
	return owner[:min(len(owner), 32)]
}

// Key returns namespace/name, as in tags.
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

func (s Service) hasFamily(f lb.Family) bool { return slices.Contains(s.Families, f) }

// RequestedPlaces returns the addresses and the names of public IPs that a Service requests, valid or not.
func RequestedPlaces(annotations map[string]string, loadBalancerIP string) []string {
	r := &reader{annotations: annotations}
	var places []string
	if loadBalancerIP != "" {
		places = append(places, loadBalancerIP)
	}
	for _, name := range []string{IPv4, IPv6, PIPName, PIPNameIPv6} {
		if text, ok := r.readText(name); ok {
			places = append(places, text)
		}
	}
	return places
}

// loadBalancerIPFor returns spec.loadBalancerIP if it applies to a family, or "".
func (s Service) loadBalancerIPFor(f lb.Family) string {
	if ip, err := netip.ParseAddr(s.LoadBalancerIP); err != nil || f.Contains(ip) {
		return s.LoadBalancerIP
	}
	return ""
}

// gatewayPrefix marks a Gateway among Services. Names of Services have no colon.
const gatewayPrefix = "gateway:"

// GatewayServiceName returns the name of a Gateway among Services.
func GatewayServiceName(gateway string) string { return gatewayPrefix + gateway }

// GatewayOf returns the Gateway that a name among Services denotes; false if the name is that of a Service.
func GatewayOf(name string) (gateway string, ok bool) { return strings.CutPrefix(name, gatewayPrefix) }

// DescribeOwner returns the kind and the name of a Service or Gateway, from its namespace and name among Services.
func DescribeOwner(key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	if gateway, ok := GatewayOf(name); ok {
		return "Gateway " + namespace + "/" + gateway
	}
	return "Service " + key
}
