// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"cmp"
	"net/netip"
	"slices"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
)

// maxUnusable is the limit of the CRD schema.
const maxUnusable = 50

// FormatUnusable returns the status entries of nodes that cannot join.
func FormatUnusable(nodes []diff.Unusable) []v1alpha1.UnusableNode {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b diff.Unusable) int { return cmp.Compare(a.Node, b.Node) })
	var unusable []v1alpha1.UnusableNode
	for _, n := range nodes[:min(len(nodes), maxUnusable)] {
		unusable = append(unusable, v1alpha1.UnusableNode{Node: n.Node, Address: metadata.Intern(n.IP.String()), Reason: humanize.FormatMessage(n.Reason, humanize.MaxCode)})
	}
	return unusable
}

// ParseUnusable parses the status entries of nodes that cannot join.
func ParseUnusable(nodes []v1alpha1.UnusableNode) []diff.Unusable {
	var unusable []diff.Unusable
	for _, n := range nodes {
		if ip, err := netip.ParseAddr(n.Address); err == nil {
			unusable = append(unusable, diff.Unusable{Node: n.Node, IP: ip, Reason: n.Reason})
		}
	}
	return unusable
}

// WithoutUnusable returns set without the nodes that cannot join.
func WithoutUnusable(set membership.Set, nodes []diff.Unusable) membership.Set {
	if len(nodes) == 0 {
		return set
	}
	unusable := map[netip.Addr]bool{}
	set.NonMembers = slices.Clone(set.NonMembers)
	for _, n := range nodes {
		unusable[n.IP] = true
		set.NonMembers = slices.DeleteFunc(set.NonMembers, func(a membership.NonMember) bool { return a.Node == n.Node })
		set.NonMembers = append(set.NonMembers, membership.NonMember{Node: n.Node, Reason: n.Reason})
	}
	slices.SortFunc(set.NonMembers, func(a, b membership.NonMember) int { return cmp.Compare(a.Node, b.Node) })
	set.Addresses = slices.DeleteFunc(slices.Clone(set.Addresses), func(a lb.Address) bool { return unusable[a.IP] })
	set.Draining = slices.DeleteFunc(slices.Clone(set.Draining), func(d membership.Drain) bool { return unusable[d.IP] })
	return set
}
