// SPDX-License-Identifier: Apache-2.0

package probe

import "strconv"

const (
	networkVersion = "2025-05-01"
	computeVersion = "2024-07-01"
	groupVersion   = "2021-04-01"
)

type place struct{ subscription, group string }

func (p place) groups() string { return "/subscriptions/" + p.subscription + "/resourceGroups" }
func (p place) self() string   { return p.groups() + "/" + p.group }
func (p place) network(kind, name string) string {
	return p.self() + "/providers/Microsoft.Network/" + kind + "/" + name
}
func (p place) securityGroup() string    { return p.network("networkSecurityGroups", "weir-probe") }
func (p place) virtualNetwork() string   { return p.network("virtualNetworks", "weir-probe") }
func (p place) subnet() string           { return p.virtualNetwork() + "/subnets/machines" }
func (p place) nic(name string) string   { return p.network("networkInterfaces", "weir-probe-"+name) }
func (p place) balancer(n string) string { return p.network("loadBalancers", "weir-probe-"+n) }
func (p place) pool(balancer, name string) string {
	return p.balancer(balancer) + "/backendAddressPools/" + name
}
func (p place) machine(name string) string {
	return p.self() + "/providers/Microsoft.Compute/virtualMachines/weir-probe-" + name
}

// Two load balancers, each with one machine: by IP address and by network interface.
const (
	byAddress   = "addresses"
	byInterface = "interfaces"
	membersPool = "members"
	furtherPool = "further"
)

// The virtual network is isolated.
const (
	networkPrefix = "192.168.254.0/24"
	// servingIP has a machine.
	servingIP = "192.168.254.10"
	joinedIP  = "192.168.254.11"
)

// spareIP has no machine.
func spareIP(n int) string { return "192.168.254." + strconv.Itoa(100+n%100) }
