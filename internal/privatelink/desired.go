// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Frontend is a frontend that Services are on, with what decides whether it can be published.
type Frontend struct {
	// ID is its ARM id, and Name the last part of that.
	ID, Name string
	Family   lb.Family
	Public   bool
	On       Balancer
}

// Balancer is what counts of the load balancer that has a frontend.
type Balancer struct {
	Location string
	SKU      lb.SKU
	// ByAddress is true if a pool of it has addresses, or shall have: Azure takes no Private Link
	// Service then.
	ByAddress bool
	// IPv6 is true if any frontend of it is of that family.
	IPv6 bool
	// Links is how many Private Link Services its other frontends have.
	Links int
	// Exceeds returns why another Private Link Service would exceed the bound of a namespace; nil if it
	// would not. It is nil where no bound applies.
	Exceeds func(namespace string) error
}

// Settings are the cluster's.
type Settings struct {
	ClusterName string
	// Group is where Private Link Services are, unless a Service says otherwise; its Type and Name
	// are not used.
	Group lb.ResourceID
	// Interfaces is true if pools are to hold network interfaces.
	Interfaces bool
	// VirtualNetwork is the ARM id of the nodes' network.
	VirtualNetwork string
	// PodSubnets are the names of the subnets of it that pods have their addresses of, where they
	// are known to have such.
	PodSubnets []string
	// Tags are put on everything that is made.
	Tags map[string]string
	// MostOnBalancer is what Azure has lifted its limit to; 0 is lb.MostPrivateLinkServices.
	MostOnBalancer int
	// OpensSubnets is true if network policies that keep Private Link Services out of a subnet may
	// be turned off.
	OpensSubnets bool
}

// resolved says where a Private Link Service is where the Service leaves that open.
func resolved(l service.PrivateLink, f Frontend, set Settings) service.PrivateLink {
	l.Name = cmp.Or(l.Name, defaultName(f))
	l.ResourceGroup = cmp.Or(l.ResourceGroup, set.Group.ResourceGroup)
	return l
}

// defaultName is that of the Azure cloud provider. A frontend's name may be so long that Azure would
// not take it.
func defaultName(f Frontend) string {
	return strings.TrimRight(("pls-" + f.Name)[:min(80, 4+len(f.Name))], "-.")
}

// desired is the Private Link Service that a Service asks for, who owns it.
func desired(l service.PrivateLink, owner string, f Frontend, set Settings) lb.PrivateLinkService {
	l = resolved(l, f, set)
	return lb.PrivateLinkService{
		ID:        lb.ResourceID{SubscriptionID: set.Group.SubscriptionID, ResourceGroup: l.ResourceGroup, Type: lb.TypePrivateLinkService, Name: l.Name},
		Location:  f.On.Location,
		Frontends: []string{f.ID},
		NAT:       natAddresses(l, set.VirtualNetwork+"/subnets/"+l.Subnet),
		FQDNs:     l.FQDNs, ProxyProtocol: l.ProxyProtocol, Visibility: l.Visibility, AutoApproval: l.AutoApproval,
		Tags: tags(owner, set),
	}
}

// Namespace is that of a Service, given as in tags; empty for none.
func Namespace(name string) string {
	namespace, _, _ := strings.Cut(name, "/")
	return namespace
}

// tags are the cluster's, and those that say whose it is, which nobody else can set.
func tags(owner string, set Settings) map[string]string {
	all := maps.Clone(set.Tags)
	if all == nil {
		all = map[string]string{}
	}
	for _, ours := range []string{service.TagLinkOwner, service.TagLinkOwnerBefore, service.TagCluster} {
		lb.UnsetTag(all, ours)
	}
	all[service.TagLinkOwner], all[service.TagCluster] = owner, set.ClusterName
	return all
}

const ofInterfaces = "backend pools of network interfaces: Azure takes no Private Link Service in front of pools of addresses"

// refusals are why Azure would take no Private Link Service on a frontend.
func refusals(f Frontend, owner string, fresh bool, set Settings) []service.Problem {
	var all []service.Problem
	refuse := func(want string) {
		all = append(all, service.Problem{Field: service.PLSCreate, Value: "true", Want: want})
	}
	switch most := cmp.Or(set.MostOnBalancer, lb.MostPrivateLinkServices); {
	case f.On.ByAddress && !set.Interfaces:
		refuse(ofInterfaces + ". Write loadBalancerBackendPoolConfigurationType: nodeIPConfiguration into azure.json, let \"weir plan --config azure.json\" show what becomes of the pools, and restart Weir with the role of config/azure-role-interfaces.json")
	case f.On.ByAddress:
		refuse(ofInterfaces + ". They are to change, and one of this load balancer holds addresses yet: \"kubectl get backendpools -A\" says how far they are, and what keeps them")
	case f.On.SKU != lb.Standard:
		refuse("a Standard load balancer: Azure takes no Private Link Service in front of a Basic one")
	case f.Family != lb.IPv4:
		refuse("a Service of IPv4 alone: Azure takes no Private Link Service in front of an IPv6 frontend")
	case f.On.IPv6:
		refuse("a load balancer without IPv6 frontends: Azure takes no Private Link Service beside one. " + service.Configurations + " chooses another load balancer")
	case fresh && f.On.Links >= most:
		refuse(fmt.Sprintf("a load balancer with fewer than %d Private Link Services, which is what Azure takes on one", most))
	case fresh && f.On.Exceeds != nil:
		if err := f.On.Exceeds(Namespace(owner)); err != nil {
			refuse("room within the bound of its namespace: " + err.Error())
		}
	}
	return all
}

// warnings are what will not work as people may expect, though Azure takes it.
func warnings(s Sharer, l service.PrivateLink, f Frontend, set Settings) []string {
	var all []string
	if f.Public && s.FloatingIP {
		all = append(all, fmt.Sprintf("flows through a Private Link Service do not reach a public frontend with floating IP: set %s to \"true\", or %s", service.DisableFloatingIP, service.Internal))
	}
	if s.Local && slices.ContainsFunc(set.PodSubnets, func(name string) bool { return strings.EqualFold(name, l.Subnet) }) {
		all = append(all, fmt.Sprintf("externalTrafficPolicy Local drops flows of a Private Link Service whose addresses are of the pods' subnet %s: name another in %s", l.Subnet, service.PLSSubnet))
	}
	if l.ProxyProtocol && s.HTTPProbe {
		all = append(all, fmt.Sprintf("an HTTP probe fails at what wants the PROXY protocol (%s), and the nodes are then taken for dead: set %s to \"tcp\", or probe another port", service.PLSProxyProtocol, service.ProbeProtocol))
	}
	return all
}
