// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

func networkRules() []Rule {
	return []Rule{
		{
			Name: "address-prefix-format", On: KindPut, Scopes: []Scope{ScopeVirtualNetwork, ScopeSubnet}, Code: "InvalidAddressPrefixFormat", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The address prefixes of a virtual network and of a subnet are ranges without bits behind their length.",
			Source:   recordedSource, check: prefixesWellFormed,
		},
		{
			Name: "subnet-in-network", On: KindPut, Scopes: []Scope{ScopeSubnet}, Code: "NetcfgInvalidSubnet", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A subnet, written alone or with its virtual network, lies in the address space of that, if it has any.",
			Source:   recordedSource, check: subnetInNetwork,
		},
	}
}

func addressPrefixes(props fields) []string {
	if space := objectField(props, "addressSpace"); space != nil {
		props = space
	}
	single, many := singleAndList(fields{"properties": props}, "addressPrefix", "addressPrefixes")
	if single != "" {
		many = append([]string{single}, many...)
	}
	return many
}

func prefixesWellFormed(s *validationTarget) string {
	for _, text := range addressPrefixes(propertyFields(s.body)) {
		if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() {
			return fmt.Sprintf("Address prefix %s of resource %s is not formatted correctly. It should follow CIDR notation, for example 10.0.0.0/24.", text, s.self)
		}
	}
	return ""
}

func subnetInNetwork(s *validationTarget) string {
	space := addressPrefixes(propertyFields(s.root))
	for _, text := range addressPrefixes(propertyFields(s.body)) {
		if len(space) > 0 && !slices.ContainsFunc(space, func(s string) bool { return containsPrefix(s, text) }) {
			return fmt.Sprintf("Subnet '%s' is not valid in virtual network '%s'.", s.self.childName, s.self.name)
		}
	}
	return ""
}

func containsPrefix(outer, inner string) bool {
	o, err1 := netip.ParsePrefix(outer)
	i, err2 := netip.ParsePrefix(inner)
	return err1 == nil && err2 == nil && o.Contains(i.Addr()) && o.Bits() <= i.Bits()
}

// checkNetworkInUse includes references from pools and their addresses.
func checkNetworkInUse(s *validationTarget) string {
	used := s.e.references().subnet
	for _, subnet := range slices.Sorted(maps.Keys(used)) {
		if subnet == s.self.key() || strings.HasPrefix(subnet, s.self.key()+"/") {
			return s.networkInUse(subnet, used[subnet][0])
		}
	}
	for _, agg := range s.e.sortedAggregates() {
		if agg.id.root != loadBalancerKind {
			continue
		}
		for _, c := range objectList(propertyFields(agg.body), pools) {
			users := append([]fields{propertyFields(c)}, listProperties(objectList(propertyFields(c), addresses))...)
			for _, user := range users {
				if named := s.referencedNetwork(user); named != "" {
					return s.networkInUse(named, agg.id.withChild(poolKind, stringField(c, "name")).String())
				}
			}
		}
	}
	return ""
}

// referencedNetwork also matches children of the subject.
func (v *validationTarget) referencedNetwork(props fields) string {
	for _, key := range []string{"subnet", "virtualNetwork"} {
		id := referenceID(props, key)
		if id == v.self.key() || strings.HasPrefix(id, v.self.key()+"/") {
			return id
		}
	}
	return ""
}

func (v *validationTarget) networkInUse(key, by string) string {
	id, err := parseID(key)
	if err != nil || id.child == nil {
		return fmt.Sprintf("Virtual network %s is in use by %s and cannot be deleted.", v.self.name, by)
	}
	name := id.childName
	if agg := v.e.aggregates[id.rootKey()]; agg != nil {
		if there := findChild(agg.body, id); there != nil {
			name = stringField(there, "name")
		}
	}
	return fmt.Sprintf("Subnet %s is in use by %s and cannot be deleted. In order to delete the subnet, delete all the resources within the subnet. See aka.ms/deletesubnet.", name, by)
}
