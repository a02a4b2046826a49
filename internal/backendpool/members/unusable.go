// SPDX-License-Identifier: Apache-2.0

package members

import (
	"cmp"
	"net/netip"
	"slices"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/once"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/words"
)

// mostUnusable is the limit of the CRD schema.
const mostUnusable = 50

// Unusable returns the status entries of nodes that cannot join.
func Unusable(nodes []poolwrite.Unusable) []v1alpha1.UnusableNode {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b poolwrite.Unusable) int { return cmp.Compare(a.Node, b.Node) })
	var all []v1alpha1.UnusableNode
	for _, n := range nodes[:min(len(nodes), mostUnusable)] {
		all = append(all, v1alpha1.UnusableNode{Node: n.Node, Address: once.Text(n.IP.String()), Reason: words.Sentence(n.Why, words.MaxCode)})
	}
	return all
}

// ParseUnusable parses the status entries of nodes that cannot join.
func ParseUnusable(nodes []v1alpha1.UnusableNode) []poolwrite.Unusable {
	var all []poolwrite.Unusable
	for _, n := range nodes {
		if ip, err := netip.ParseAddr(n.Address); err == nil {
			all = append(all, poolwrite.Unusable{Node: n.Node, IP: ip, Why: n.Reason})
		}
	}
	return all
}

// Without returns set without the nodes that cannot join.
func Without(set membership.Set, nodes []poolwrite.Unusable) membership.Set {
	if len(nodes) == 0 {
		return set
	}
	without := map[netip.Addr]bool{}
	set.Absent = slices.Clone(set.Absent)
	for _, n := range nodes {
		without[n.IP] = true
		set.Absent = slices.DeleteFunc(set.Absent, func(a membership.Absence) bool { return a.Node == n.Node })
		set.Absent = append(set.Absent, membership.Absence{Node: n.Node, Why: n.Why})
	}
	slices.SortFunc(set.Absent, func(a, b membership.Absence) int { return cmp.Compare(a.Node, b.Node) })
	set.Addresses = slices.DeleteFunc(slices.Clone(set.Addresses), func(a lb.Address) bool { return without[a.IP] })
	set.Draining = slices.DeleteFunc(slices.Clone(set.Draining), func(d membership.Drain) bool { return without[d.IP] })
	return set
}
