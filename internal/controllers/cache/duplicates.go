// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// sameAddress returns the nodes that share the node's pool address of a family.
func (s *Snapshot) sameAddress(node membership.Node, family lb.Family) (nodes []*corev1.Node, shared string) {
	ip, ok := node.Address(family)
	if !ok {
		return nil, ""
	}
	have := List[corev1.Node](s.Nodes, NodesByAddress, ip.String())
	if len(have) < 2 {
		return nil, ""
	}
	for _, n := range have {
		if first, _ := (membership.Node{IPs: InternalIPs(n)}).Address(family); first == ip {
			nodes = append(nodes, n)
		}
	}
	return nodes, "its address " + ip.String()
}

func (s *Snapshot) sameMachine(node membership.Node, _ lb.Family) (nodes []*corev1.Node, shared string) {
	if node.Machine == "" {
		return nil, ""
	}
	return List[corev1.Node](s.Nodes, NodesByMachine, node.Machine), "its machine"
}

// placedBy adds the load balancer to converted nodes.
func placedBy(places func(*corev1.Node) string, convert func(*corev1.Node) membership.Node) func(*corev1.Node) membership.Node {
	return func(n *corev1.Node) membership.Node {
		node := convert(n)
		node.Place = places(n)
		return node
	}
}

// resolveDuplicate returns a node as seen by its load balancer's pools if nodes on others are the same
// member.
func resolveDuplicate(node membership.Node, duplicates []*corev1.Node, shared string, convert func(*corev1.Node) membership.Node) membership.Node {
	if len(duplicates) < 2 {
		return node
	}
	nodes := make([]membership.Node, len(duplicates))
	for i, n := range duplicates {
		nodes[i] = convert(n)
	}
	return membership.ResolveDuplicate(node, nodes, shared)
}

// IsDuplicate reports whether a node on another load balancer represents the machine of n.
func (s *Snapshot) IsDuplicate(n *corev1.Node, places func(*corev1.Node) string) bool {
	convert := placedBy(places, s.NodeOf)
	node := convert(n)
	duplicates, shared := s.sameMachine(node, "")
	return resolveDuplicate(node, duplicates, shared, convert).Duplicate != ""
}

// DuplicateNodes returns the other nodes with an address or the machine of n.
func (s *Snapshot) DuplicateNodes(n *corev1.Node) (nodes []*corev1.Node) {
	add := func(items []*corev1.Node) {
		for _, o := range items {
			if o.Name != n.Name && !slices.Contains(nodes, o) {
				nodes = append(nodes, o)
			}
		}
	}
	for _, ip := range InternalIPs(n) {
		add(List[corev1.Node](s.Nodes, NodesByAddress, ip.String()))
	}
	if n.Spec.ProviderID != "" {
		add(List[corev1.Node](s.Nodes, NodesByMachine, lb.MachineKey(n.Spec.ProviderID)))
	}
	return nodes
}
