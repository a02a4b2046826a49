// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"encoding/json"
	"strings"
	"time"
)

// rootKind is a resource type with its own etag. Its children share body and etag. To add a type,
// add an entry in roots, its validation rules and, if other resources reference it, a line in
// links.go.
type rootKind struct {
	namespace  string // of the resource provider
	collection string // as in the path, e.g. loadBalancers
	// parent is the type of the parent resource, e.g. of a scale set's instance; mostly nil.
	parent    *rootKind
	operation string // middle of the operation's name, e.g. LoadBalancer
	scope     Scope
	children  []*childKind
	// ipConfigs are the children that receive addresses, public ones or private ones of a subnet.
	ipConfigs *childKind
	// derived and kept are as in childKind.
	derived, serverState []string
	// defaults are added by the server when a PUT omits them.
	defaults fields
	// guid reports whether properties contain a resourceGuid.
	guid bool
	// put and delete are default latencies.
	put, delete latencyRange
	// pollAfter is the Retry-After of an accepted PUT; 0 is pollInterval.
	pollAfter time.Duration
}

// childKind is an array in its parent's properties.
type childKind struct {
	collection  string // property of the parent and path segment
	operation   string
	scope       Scope
	addressable bool // has paths of its own
	// json is Azure's internal name of the properties object, if known: Azure rejects the property
	// name inside it.
	json string
	// derived properties are computed by the server: removed from writes, added to responses.
	derived []string
	// serverState properties are server-managed state that writes cannot change.
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

// references are the properties by which a child of a load balancer references another: an object
// with an id, or an array of them.
var references = []string{"backendAddressPool", pools, "frontendIPConfiguration", frontends, "probe"}

// rootByCollection returns the type with that collection name in a namespace, or below a parent.
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
