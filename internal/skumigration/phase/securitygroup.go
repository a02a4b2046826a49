// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Subnet has what decides whether a subnet admits traffic.
type Subnet struct {
	// SecurityGroup is an ARM id; empty if there is none.
	SecurityGroup string
	// Hidden is true if reading is forbidden, Missing if it doesn't exist.
	Hidden, Missing bool
}

// machineWithoutGroup is a machine without its own network security group, with its subnets in the pools.
type machineWithoutGroup struct {
	name    string
	subnets []string
}

// SubnetsWithoutGroup returns the subnets of machines without their own network security group, sorted; none if
// all addresses are private, because only public traffic to a Standard load balancer needs a group.
func SubnetsWithoutGroup(j Journal, snapshot Snapshot) []string {
	if len(j.publicIPIDs()) == 0 {
		return nil
	}
	byKey := map[string]string{}
	for _, m := range snapshot.machinesWithoutGroup() {
		for _, id := range m.subnets {
			if id != "" { // not visible
				byKey[strings.ToLower(id)] = id
			}
		}
	}
	return sortValues(byKey)
}

// machinesWithoutGroup checks a scale set by its model, and by instances if the model has a group.
func (s Snapshot) machinesWithoutGroup() (groups []machineWithoutGroup) {
	managed := s.managedPools()
	of := func(name string, interfaces ...lb.InterfaceConfiguration) bool {
		m := machineWithoutGroup{name: name}
		for _, i := range interfaces {
			for _, c := range i.IPConfigurations {
				if i.SecurityGroup == "" && slices.ContainsFunc(c.Pools, managed.HasPool) {
					m.subnets = append(m.subnets, c.Subnet)
				}
			}
		}
		if len(m.subnets) > 0 {
			groups = append(groups, m)
		}
		return len(m.subnets) > 0
	}
	for _, i := range s.Interfaces {
		of("network interface "+i.ID.Name, i.InterfaceConfiguration)
	}
	for _, set := range s.ScaleSets {
		model := of("scale set "+set.ID.Name, set.Interfaces...)
		for _, i := range set.Instances {
			if !model {
				of("instance "+i.ID+" of scale set "+set.ID.Name, i.Interfaces...)
			}
		}
	}
	return groups
}

// checkSecurityGroups reports machines that become unreachable because neither they nor their subnets have a
// network security group.
func (p *preflightChecks) checkSecurityGroups(j Journal) {
	if len(j.publicIPIDs()) == 0 {
		return
	}
	var closed, unknown []string
	subnets, hidden := map[string]string{}, map[string]string{}
	for _, m := range p.snapshot.machinesWithoutGroup() {
		open, known := true, true
		for _, id := range m.subnets {
			switch of, read := p.snapshot.Subnets[strings.ToLower(id)]; {
			case of.Hidden:
				hidden[strings.ToLower(id)] = id
			case !read || of.Missing: // the machine is on a subnet, even if Azure doesn't show it
				known = false
			case of.SecurityGroup == "":
				open, subnets[strings.ToLower(id)] = false, id
			}
		}
		switch {
		case !open:
			closed = append(closed, m.name)
		case !known:
			unknown = append(unknown, m.name)
		}
	}
	group, at := "one that admits what shall reach the Services", append([]string{"the machines"}, sortValues(subnets)...)
	if p.options.SecurityGroup != "" {
		group = p.options.SecurityGroup + ", which azure.json names,"
	}
	if len(closed) > 0 {
		p.addBlocker(ReasonNoSecurityGroup, "there is no network security group on %s, nor on their subnets, and what is public is closed without one once it is Standard: put %s on %s",
			joinNames(closed), group, strings.Join(at[:min(len(at), maxNames)], ", or on "))
	}
	if len(unknown) > 0 {
		p.addWarning(ReasonNoSecurityGroup, "Azure does not show the subnet of %s: see that a network security group lets in there what shall reach the Services, for what is public is closed without one once it is Standard", joinNames(unknown))
	}
	if len(hidden) > 0 {
		p.addBlocker(ReasonPermissionMissing, "Weir's identity lacks Microsoft.Network/virtualNetworks/subnets/read on %s, so it is unknown whether a network security group admits traffic: "+
			"assign config/azure-role-migration.json there", joinNames(sortValues(hidden)))
	}
	if p.options.SecurityGroup == "" {
		p.addWarning(ReasonNoSecurityRules, `azure.json names no "securityGroupName": admit the traffic to public IPs in the network security group of the machines, because Weir does not`)
	}
}

func sortValues(of map[string]string) []string {
	values := make([]string, 0, len(of))
	for _, v := range of {
		values = append(values, v)
	}
	slices.Sort(values)
	return values
}
