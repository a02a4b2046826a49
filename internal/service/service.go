// SPDX-License-Identifier: Apache-2.0

// Package service decides which load balancer a Kubernetes Service wants: frontends,
// rules, probes, pools, public IPs, and on which of the cluster's load balancers. It is
// pure: Services and settings go in as values, and what Azure shall hold comes out, or
// the list of what is wrong with the Service.
//
// Annotations, names and tags are those of the Azure cloud provider, so that a Service
// means the same under both (https://cloud-provider-azure.sigs.k8s.io/topics/loadbalancer/).
package service

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Service is what counts of a Kubernetes Service of type LoadBalancer.
type Service struct {
	Namespace, Name, UID string
	Labels, Annotations  map[string]string
	Ports                []Port
	// Families are spec.ipFamilies, one or two.
	Families []lb.Family
	// Local is true for externalTrafficPolicy Local.
	Local bool
	// HealthCheckNodePort is where kube-proxy tells of a Local Service's endpoints.
	HealthCheckNodePort int32
	// ClientIP is true for session affinity by client address.
	ClientIP bool
	// LoadBalancerIP is spec.loadBalancerIP, which the annotations of a family go before.
	LoadBalancerIP string
	// SourceRanges are spec.loadBalancerSourceRanges.
	SourceRanges []string
	// SharesAddress is true if another Service has its private address, or is to have it.
	SharesAddress bool
	// PoolNames are those that OwnPools returns where the usual ones are another Service's.
	PoolNames []string
}

// Port is one port of a Service.
type Port struct {
	Name        string
	Protocol    string // TCP, UDP or SCTP
	AppProtocol string
	Port        int32
	NodePort    int32 // 0 where none is allocated
}

// Settings are the cluster's.
type Settings struct {
	// ClusterName is the name of the shared pool, and the first part of public IPs' names.
	ClusterName string
	// PublicIPs is where public IPs are, unless a Service says otherwise; its Type and
	// Name are not used.
	PublicIPs lb.ResourceID
	// PrivateLinks is where Private Link Services are, unless a Service says otherwise; its Type and
	// Name are not used.
	PrivateLinks lb.ResourceID
	// VirtualNetwork is the ARM id of the nodes' network, and Subnet the name of the
	// subnet in it where private frontends are, unless a Service says otherwise.
	VirtualNetwork, Subnet string
	// Interfaces is true where pools hold network interfaces. Then Local Services share the pools of
	// all nodes, too, and their probes decide: a pool that follows endpoints would be a write for each
	// machine.
	Interfaces bool
	// Converts is true where pools of nodes that hold the other kind of members become such of this
	// one.
	Converts bool
	// SharedProbe is the probe of all Services that are not Local; nil gives each its own.
	SharedProbe *lb.Probe
	// DisableOutboundSNAT keeps members from using frontends for outbound flows.
	DisableOutboundSNAT bool
	// Tags are put on everything that is made.
	Tags map[string]string
}

// Owner is the first part of the names of all that is a Service's on a load balancer:
// "a" and the UID without its dashes, cut to 32 characters.
func (s Service) Owner() string { return Owner(s.UID) }

// Owner is that of the Service with this UID.
func Owner(uid string) string {
	owner := "a" + strings.ReplaceAll(uid, "-", "")
	return owner[:min(len(owner), 32)]
}

// Key is the Service's name as people and tags spell it.
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

// has reports whether the Service has a family.
func (s Service) has(f lb.Family) bool { return slices.Contains(s.Families, f) }

// literal is the address that spec.loadBalancerIP names for a family, if it does.
func (s Service) literal(f lb.Family) string {
	if ip, err := netip.ParseAddr(s.LoadBalancerIP); err != nil || f.Of(ip) {
		return s.LoadBalancerIP
	}
	return ""
}
