// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Frontend has what decides whether a frontend can be published.
type Frontend struct {
	// ID is the ARM id.
	ID, Name     string
	Family       lb.Family
	Public       bool
	LoadBalancer LoadBalancer
}

// LoadBalancer has the relevant properties of a frontend's load balancer.
type LoadBalancer struct {
	Location, ExtendedLocation string
	SKU                        lb.SKU
	// HasAddressPools is true if any pool has addresses, or will have: Azure then rejects Private Link
	// Services.
	HasAddressPools bool
	// IPv6 is true if any frontend is IPv6.
	IPv6 bool
	// LinkCount counts the Private Link Services of other frontends.
	LinkCount int
	// CheckLimit rejects another Private Link Service of a namespace. Nil means no limit.
	CheckLimit func(namespace string) error
}

// Settings are the settings of the cluster.
type Settings struct {
	ClusterName string
	// Group is the default resource group; Type and Name are unused.
	Group          lb.ResourceID
	InterfacePools bool
	// VirtualNetwork is an ARM id.
	VirtualNetwork string
	// PodSubnets are names of subnets with pod addresses.
	PodSubnets []string
	Tags       map[string]string
	// MaxPerLoadBalancer is Azure's limit if raised; 0 means lb.MaxPrivateLinkServices.
	MaxPerLoadBalancer int
	// CanOpenSubnets allows disabling network policies of a subnet.
	CanOpenSubnets bool
}

func withDefaults(l service.PrivateLink, f Frontend, settings Settings) service.PrivateLink {
	l.Name = cmp.Or(l.Name, defaultName(f))
	l.ResourceGroup = cmp.Or(l.ResourceGroup, settings.Group.ResourceGroup)
	return l
}

// defaultName is the name that the Azure cloud provider uses, cut to Azure's maximum.
func defaultName(f Frontend) string {
	return strings.TrimRight(("pls-" + f.Name)[:min(80, 4+len(f.Name))], "-.")
}

func buildDesired(l service.PrivateLink, owner string, f Frontend, settings Settings) lb.PrivateLinkService {
	l = withDefaults(l, f, settings)
	return lb.PrivateLinkService{
		ID:       lb.ResourceID{SubscriptionID: settings.Group.SubscriptionID, ResourceGroup: l.ResourceGroup, Type: lb.TypePrivateLinkService, Name: l.Name},
		Location: f.LoadBalancer.Location, ExtendedLocation: f.LoadBalancer.ExtendedLocation,
		Frontends: []string{f.ID},
		NAT:       natAddresses(l, settings.VirtualNetwork+"/subnets/"+l.Subnet),
		FQDNs:     l.FQDNs, ProxyProtocol: l.ProxyProtocol, Visibility: l.Visibility, AutoApproval: l.AutoApproval,
		Tags: ownerTags(owner, settings),
	}
}

// Namespace returns the namespace of a "namespace/name"; empty for "".
func Namespace(name string) string {
	namespace, _, _ := strings.Cut(name, "/")
	return namespace
}

// ownerTags includes the owner, which users can't override.
func ownerTags(owner string, settings Settings) map[string]string {
	tags := maps.Clone(settings.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	for _, name := range []string{service.TagLinkOwner, service.TagLinkOwnerBefore, service.TagCluster} {
		lb.UnsetTag(tags, name)
	}
	tags[service.TagLinkOwner], tags[service.TagCluster] = owner, settings.ClusterName
	return tags
}

const interfacePoolsMessage = "backend pools of network interfaces: Azure supports no Private Link Service in front of pools of addresses"

// validateFrontend returns why Azure would reject the request.
func validateFrontend(f Frontend, owner string, fresh bool, settings Settings) []service.Problem {
	var problems []service.Problem
	refuse := func(want string) {
		problems = append(problems, service.Problem{Field: service.PLSCreate, Value: "true", Expected: want})
	}
	switch limit := cmp.Or(settings.MaxPerLoadBalancer, lb.MaxPrivateLinkServices); {
	case f.LoadBalancer.HasAddressPools && !settings.InterfacePools:
		refuse(interfacePoolsMessage + ". Write loadBalancerBackendPoolConfigurationType: nodeIPConfiguration into azure.json, let \"weir plan --config azure.json\" show what becomes of the pools, and restart Weir with the role of config/azure-role-interfaces.json")
	case f.LoadBalancer.HasAddressPools:
		refuse(interfacePoolsMessage + ". They are being changed, and one of this load balancer still has addresses: see \"kubectl get backendpools -A\"")
	case f.LoadBalancer.SKU != lb.Standard:
		refuse("a Standard load balancer: Azure supports no Private Link Service in front of a Basic one")
	case f.Family != lb.IPv4:
		refuse("a Service of IPv4 alone: Azure supports no Private Link Service in front of an IPv6 frontend")
	case f.LoadBalancer.IPv6:
		refuse("a load balancer without IPv6 frontends: Azure supports no Private Link Service beside one. " + service.Configurations + " chooses another load balancer")
	case fresh && f.LoadBalancer.LinkCount >= limit:
		refuse(fmt.Sprintf("a load balancer with fewer than %d Private Link Services, which is Azure's limit", limit))
	case fresh && f.LoadBalancer.CheckLimit != nil:
		if err := f.LoadBalancer.CheckLimit(Namespace(owner)); err != nil {
			refuse("room within the bound of its namespace: " + err.Error())
		}
	}
	return problems
}

// collectWarnings returns settings that Azure accepts but that may not work.
func collectWarnings(s FrontendService, l service.PrivateLink, f Frontend, settings Settings) []string {
	var warnings []string
	if f.Public && s.FloatingIP {
		warnings = append(warnings, fmt.Sprintf("flows through a Private Link Service do not reach a public frontend with floating IP: set %s to \"true\", or %s", service.DisableFloatingIP, service.Internal))
	}
	if s.Local && slices.ContainsFunc(settings.PodSubnets, func(name string) bool { return strings.EqualFold(name, l.Subnet) }) {
		warnings = append(warnings, fmt.Sprintf("externalTrafficPolicy Local drops flows of a Private Link Service whose addresses are of the pods' subnet %s: name another in %s", l.Subnet, service.PLSSubnet))
	}
	if l.ProxyProtocol && s.HTTPProbe {
		warnings = append(warnings, fmt.Sprintf("an HTTP probe fails at what wants the PROXY protocol (%s), and the nodes are then taken for dead: set %s to \"tcp\", or probe another port", service.PLSProxyProtocol, service.ProbeProtocol))
	}
	return warnings
}
