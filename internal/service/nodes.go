// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"slices"
	"strings"
)

// Node is a node that may take traffic from a load balancer.
type Node struct {
	Name   string
	Labels map[string]string
	// VMSet is its scale set, or the availability set of its machine; empty for neither.
	VMSet string
	// Placed is the configuration that it was placed on before, as recorded, or as Azure
	// shows it; empty if on none.
	Placed string
}

// PlaceNodes returns the configuration of each node, by its name: each node is on just
// one. One without a set or a selector that says where stays where it is, and otherwise
// goes where the fewest nodes are. A node is missing if no configuration may have it.
//
// Source: https://cloud-provider-azure.sigs.k8s.io/topics/multislb/
func PlaceNodes(nodes []Node, all []Configuration) map[string]string {
	placed := make(map[string]string, len(nodes))
	count := map[string]int{}
	put := func(n Node, configuration string) {
		placed[n.Name] = configuration
		count[configuration]++
	}
	var rest []Node
	for _, n := range nodes {
		if conf := PlaceOf(n, all); conf != "" {
			put(n, conf)
		} else {
			rest = append(rest, n)
		}
	}
	free := unselective(all)
	if len(free) == 0 {
		return placed
	}
	slices.SortFunc(rest, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range rest {
		put(n, slices.MinFunc(free, func(a, b Configuration) int { return cmp.Compare(count[a.Name], count[b.Name]) }).Name)
	}
	return placed
}

// PlaceOf returns the configuration of a node as far as that does not depend on other nodes:
// where its set or a selector says, or where it is; empty otherwise.
func PlaceOf(n Node, all []Configuration) string {
	if conf := belongs(n, all); conf != "" {
		return conf
	}
	if slices.Contains(names(unselective(all)), n.Placed) {
		return n.Placed
	}
	return ""
}

// unselective are the configurations that take any node.
func unselective(all []Configuration) []Configuration {
	return slices.DeleteFunc(slices.Clone(all), func(c Configuration) bool { return c.Nodes != nil })
}

// belongs returns the configuration that a node's set or labels name; empty if none.
func belongs(n Node, all []Configuration) string {
	for _, conf := range all {
		if conf.PrimaryVMSet != "" && strings.EqualFold(conf.PrimaryVMSet, n.VMSet) {
			return conf.Name
		}
	}
	for _, conf := range all {
		if conf.Nodes != nil && conf.Nodes(n.Labels) {
			return conf.Name
		}
	}
	return ""
}
