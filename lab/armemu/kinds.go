// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"encoding/json"
	"strings"
	"time"
)

// rootKind is a resource type with its own etag. To add a type, add an entry in roots, its
// validation rules and, if other resources reference it, a case in the reference index.
type rootKind struct {
	namespace  string // of the resource provider
	collection string // as in the path, e.g. loadBalancers
	// parent is, for an instance, the scale set's type; mostly nil.
	parent    *rootKind
	operation string // e.g. LoadBalancer
	scope     Scope
	children  []*childKind
	// ipConfigs are the children that receive addresses.
	ipConfigs            *childKind
	derived, serverState []string
	defaults             fields
	guid                 bool
	put, delete          latencyRange
	// pollAfter is the Retry-After of an accepted PUT; 0 is pollInterval.
	pollAfter time.Duration
}

// childKind is an array in its parent's properties.
type childKind struct {
	collection  string // property of the parent and path segment
	operation   string
	scope       Scope
	addressable bool // has paths of its own
	// json is Azure's internal name of the properties object: Azure rejects the property name in
	// it.
	json string
	// derived properties are read-only and computed.
	derived []string
	// serverState properties are read-only state.
	serverState []string
	defaults    fields
	put, delete latencyRange
	pollAfter   time.Duration
}

const (
	network    = "Microsoft.Network"
	compute    = "Microsoft.Compute"
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
	nicPools   = "loadBalancerBackendAddressPools"
	adminState = "adminState"

	connections          = "privateEndpointConnections"
	privateLinkFrontends = "loadBalancerFrontendIpConfigurations"
)

var (
	poolKind = &childKind{
		collection: pools, operation: "LoadBalancerBackendAddressPool", json: "LoadBalancerBackendAddressPoolProperties", scope: ScopePool, addressable: true,
		derived: []string{lbRules, "outboundRule", outRules, natRules}, serverState: []string{nicConfigs},
		put: latencyRange{1.5, 2, 2}, delete: deleteLatency,
	}
	subnetKind = &childKind{
		collection: subnets, operation: "Subnet", scope: ScopeSubnet, addressable: true,
		put: latencyRange{3.5, 4, 4}, delete: deleteLatency, pollAfter: 3 * time.Second,
	}
	frontendKind = &childKind{
		collection: frontends, derived: []string{lbRules, outRules, natRules, natPools},
		defaults: fields{"privateIPAllocationMethod": "Dynamic"},
	}
	loadBalancerKind = &rootKind{
		namespace: network, collection: "loadBalancers", operation: "LoadBalancer", scope: ScopeLoadBalancer, guid: true,
		ipConfigs: frontendKind, derived: []string{"scope"},
		children: []*childKind{
			poolKind,
			frontendKind,
			{collection: lbRules, defaults: fields{
				"enableFloatingIP": false, "enableTcpReset": false, "disableOutboundSnat": false,
				"idleTimeoutInMinutes": json.Number("4"), "loadDistribution": "Default",
			}},
			{collection: lbProbes, json: "LoadBalancerProbeProperties", derived: []string{lbRules}, defaults: fields{
				"intervalInSeconds": json.Number("15"), "probeThreshold": json.Number("1"),
			}},
			{collection: natRules},
			{collection: natPools},
			{collection: outRules},
		},
		put: addressLatency, delete: deleteLatency,
	}
	virtualNetworkKind = &rootKind{
		namespace: network, collection: "virtualNetworks", operation: "VirtualNetwork", scope: ScopeVirtualNetwork, guid: true,
		children: []*childKind{subnetKind},
		put:      latencyRange{3.5, 4, 4}, delete: deleteLatency, pollAfter: 3 * time.Second,
	}
	publicIPKind = &rootKind{
		namespace: network, collection: "publicIPAddresses", operation: "PublicIpAddress", scope: ScopePublicIP, guid: true,
		derived: []string{"ipConfiguration"}, serverState: []string{"ipAddress"},
		defaults: fields{
			"publicIPAddressVersion": "IPv4", "publicIPAllocationMethod": "Dynamic",
			"idleTimeoutInMinutes": json.Number("4"), "ipTags": []any{},
		},
		put: latencyRange{2, 3, 3}, delete: deleteLatency, pollAfter: time.Second,
	}
	publicIPPrefixKind = &rootKind{
		namespace: network, collection: "publicIPPrefixes", operation: "PublicIpPrefix", scope: ScopePublicIPPrefix, guid: true,
		derived: []string{"publicIPAddresses"}, serverState: []string{"ipPrefix"},
		put: latencyRange{4, 5, 5}, delete: deleteLatency, pollAfter: time.Second,
	}
	ipConfigKind         = &childKind{collection: "ipConfigurations"}
	networkInterfaceKind = &rootKind{
		namespace: network, collection: "networkInterfaces", operation: "NetworkInterface", scope: ScopeNetworkInterface, guid: true,
		ipConfigs: ipConfigKind, children: []*childKind{ipConfigKind}, derived: []string{"virtualMachine", "primary"},
		put: noLatency, delete: deleteLatency,
	}
	securityGroupKind = &rootKind{
		namespace: network, collection: "networkSecurityGroups", operation: "NetworkSecurityGroup", scope: ScopeSecurityGroup, guid: true,
		children: []*childKind{{collection: securityRules}},
		derived:  []string{"defaultSecurityRules", "networkInterfaces", subnets},
		put:      latencyRange{3, 4, 4}, delete: deleteLatency, pollAfter: 3 * time.Second,
	}
	linkConfigKind = &childKind{
		collection: "ipConfigurations", defaults: fields{"privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": "IPv4"},
	}
	connectionKind = &childKind{
		collection: connections, operation: "PrivateEndpointConnection", scope: ScopeConnection, addressable: true,
		serverState: []string{"privateEndpoint", "linkIdentifier"},
		put:         latencyRange{5, 9, 10}, delete: deleteLatency,
	}
	privateLinkServiceKind = &rootKind{
		namespace: network, collection: "privateLinkServices", operation: "PrivateLinkService", scope: ScopePrivateLinkService, guid: true,
		ipConfigs: linkConfigKind, children: []*childKind{linkConfigKind, connectionKind},
		derived: []string{"networkInterfaces"}, serverState: []string{"alias", connections},
		defaults: fields{"enableProxyProtocol": false, "fqdns": []any{}},
		put:      latencyRange{5, 9, 10}, delete: deleteLatency,
	}
	virtualMachineKind = &rootKind{
		namespace: compute, collection: "virtualMachines", operation: "VirtualMachine", scope: ScopeVirtualMachine,
		serverState: []string{instanceView},
		put:         machine, delete: machine,
	}
	scaleSetKind = &rootKind{
		namespace: compute, collection: "virtualMachineScaleSets", operation: "VMScaleSet", scope: ScopeScaleSet,
		put: latencyRange{28.5, 108, 198}, delete: latencyRange{28.5, 108, 198},
	}
	instanceKind = &rootKind{
		namespace: compute, collection: "virtualMachines", parent: scaleSetKind, operation: "VMScaleSetVM", scope: ScopeScaleSetVM,
		derived: []string{"latestModelApplied"}, serverState: []string{instanceView},
		put: instanceLatency, delete: instanceLatency,
	}
	roots = []*rootKind{
		loadBalancerKind, virtualNetworkKind, publicIPKind, publicIPPrefixKind, networkInterfaceKind,
		securityGroupKind, privateLinkServiceKind, virtualMachineKind, scaleSetKind, instanceKind,
	}
)

// references are properties with an ID or an array of IDs.
var references = []string{"backendAddressPool", pools, "frontendIPConfiguration", frontends, "probe"}

func rootByCollection(namespace string, parent *rootKind, name string) *rootKind {
	for _, k := range roots {
		if k.namespace == namespace && k.parent == parent && strings.EqualFold(k.collection, name) {
			return k
		}
	}
	return nil
}

func (k *rootKind) findChild(collection string) *childKind {
	for _, c := range k.children {
		if strings.EqualFold(c.collection, collection) {
			return c
		}
	}
	return nil
}

func (k *rootKind) typeName() string {
	if k.parent != nil {
		return k.parent.typeName() + "/" + k.collection
	}
	return k.namespace + "/" + k.collection
}

func modeledTypes() string {
	var names []string
	for _, k := range roots {
		names = append(names, k.typeName())
		for _, c := range k.children {
			if c.addressable {
				names = append(names, k.typeName()+"/"+c.collection)
			}
		}
	}
	return strings.Join(names, ", ")
}
