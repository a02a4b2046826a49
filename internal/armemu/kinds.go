// SPDX-License-Identifier: Apache-2.0

package armemu

import "strings"

// A rootKind is a resource type with a version and an etag of its own. Its
// children live in its body and share both. A further type (public IPs, NICs,
// network security groups, private link services) is one more entry in roots,
// its rules in the validation table and, where it refers to others, an entry in
// references.
type rootKind struct {
	collection string // as in the path, e.g. loadBalancers
	operation  string // middle of the operation's name, e.g. LoadBalancer
	scope      Scope
	children   []*childKind
	// guid says that properties carry a resourceGuid.
	guid bool
	// putMedian is the model's median latency of a PUT, in seconds.
	putMedian, deleteMedian float64
}

// A childKind is an array in its parent's properties.
type childKind struct {
	collection  string // property of the parent and segment of the path
	operation   string
	scope       Scope
	addressable bool // has paths of its own
	// derived properties are the server's: stripped from writes, filled in answers.
	derived []string
	// kept properties are the server's as well, but are state: a write cannot
	// change them and they survive it.
	kept                    []string
	putMedian, deleteMedian float64
}

const (
	provider   = "Microsoft.Network"
	pools      = "backendAddressPools"
	addresses  = "loadBalancerBackendAddresses"
	lbRules    = "loadBalancingRules"
	frontends  = "frontendIPConfigurations"
	lbProbes   = "probes"
	natRules   = "inboundNatRules"
	natPools   = "inboundNatPools"
	outRules   = "outboundRules"
	subnets    = "subnets"
	nicConfigs = "backendIPConfigurations"
)

var (
	poolKind = &childKind{
		collection: pools, operation: "LoadBalancerBackendAddressPool", scope: ScopePool, addressable: true,
		derived: []string{lbRules, "outboundRule", outRules, natRules}, kept: []string{nicConfigs},
		putMedian: 6, deleteMedian: 6,
	}
	subnetKind = &childKind{
		collection: subnets, operation: "Subnet", scope: ScopeSubnet, addressable: true,
		putMedian: 4, deleteMedian: 4,
	}
	loadBalancerKind = &rootKind{
		collection: "loadBalancers", operation: "LoadBalancer", scope: ScopeLoadBalancer, guid: true,
		children: []*childKind{
			poolKind,
			{collection: frontends, derived: []string{lbRules, outRules, natRules, natPools}},
			{collection: lbRules},
			{collection: lbProbes, derived: []string{lbRules}},
			{collection: natRules},
			{collection: natPools},
			{collection: outRules},
		},
		putMedian: 12, deleteMedian: 12,
	}
	virtualNetworkKind = &rootKind{
		collection: "virtualNetworks", operation: "VirtualNetwork", scope: ScopeVirtualNetwork, guid: true,
		children:  []*childKind{subnetKind},
		putMedian: 4, deleteMedian: 4,
	}
	roots = []*rootKind{loadBalancerKind, virtualNetworkKind}
)

// references are the properties by which one child of a load balancer names
// another; each is an object with an id or an array of such objects.
var references = []string{"backendAddressPool", pools, "frontendIPConfiguration", frontends, "probe"}

func rootByCollection(name string) *rootKind {
	for _, k := range roots {
		if strings.EqualFold(k.collection, name) {
			return k
		}
	}
	return nil
}

func (k *rootKind) child(collection string) *childKind {
	for _, c := range k.children {
		if strings.EqualFold(c.collection, collection) {
			return c
		}
	}
	return nil
}

func modelledTypes() string {
	var names []string
	for _, k := range roots {
		names = append(names, provider+"/"+k.collection)
		for _, c := range k.children {
			if c.addressable {
				names = append(names, provider+"/"+k.collection+"/"+c.collection)
			}
		}
	}
	return strings.Join(names, ", ")
}
