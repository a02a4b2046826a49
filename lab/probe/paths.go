// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"strconv"
	"strings"
)

const (
	networkVersion = "2025-05-01"
	computeVersion = "2024-07-01"
	groupVersion   = "2021-04-01"
)

type place struct{ subscription, group string }

func (p place) groupsPath() string { return "/subscriptions/" + p.subscription + "/resourceGroups" }
func (p place) groupPath() string  { return p.groupsPath() + "/" + p.group }
func (p place) networkPath(kind, name string) string {
	return p.groupPath() + "/providers/Microsoft.Network/" + kind + "/" + name
}
func (p place) securityGroupPath() string {
	return p.networkPath("networkSecurityGroups", "weir-probe")
}
func (p place) virtualNetworkPath() string { return p.networkPath("virtualNetworks", "weir-probe") }
func (p place) subnetPath() string         { return p.virtualNetworkPath() + "/subnets/machines" }
func (p place) interfacePath(name string) string {
	return p.networkPath("networkInterfaces", "weir-probe-"+name)
}
func (p place) loadBalancer(n string) string { return p.networkPath("loadBalancers", "weir-probe-"+n) }
func (p place) poolPath(balancer, name string) string {
	return p.loadBalancer(balancer) + "/backendAddressPools/" + name
}
func (p place) publicIPPath(family string) string {
	return p.networkPath("publicIPAddresses", "weir-probe-"+strings.ToLower(family))
}
func (p place) machinePath(name string) string {
	return p.groupPath() + "/providers/Microsoft.Compute/virtualMachines/weir-probe-" + name
}

// Two load balancers, each with one machine: by IP address and by network interface.
const (
	byAddress   = "addresses"
	byInterface = "interfaces"
	membersPool = "members"
	addedPool   = "further"
)

// The virtual network is isolated.
const (
	networkPrefix = "192.168.254.0/24"
	// servingIP has a machine.
	servingIP   = "192.168.254.10"
	interfaceIP = "192.168.254.11"
)

// freeIP has no machine.
func freeIP(n int) string { return "192.168.254." + strconv.Itoa(100+n%100) }
