// SPDX-License-Identifier: Apache-2.0

// Package membership computes which nodes belong in a backend pool. It is pure: slices and nodes are values,
// and the result is a set of addresses.
package membership

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// Slice is an EndpointSlice of a Service.
type Slice struct {
	// Family is the address type; empty for FQDN slices, which add no members.
	Family    lb.Family
	Endpoints []Endpoint
}

// Endpoint is an endpoint of a slice with resolved nil conditions.
type Endpoint struct {
	// Node is empty if the endpoint has no nodeName.
	Node        string
	Ready       bool
	Serving     bool
	Terminating bool
}

// Takes reports whether the endpoint makes its node a member. A terminating but serving endpoint drains open
// connections; the failing healthCheckNodePort keeps new flows away.
func (e Endpoint) Takes() bool { return e.Ready || e.Terminating && e.Serving }

// Node is the only input about a cluster node. Where pools select nodes, it is the node as seen by that pool.
type Node struct {
	Name string
	// UID distinguishes nodes recreated with the same name.
	UID string
	// IPs are the InternalIP addresses in status order.
	IPs []netip.Addr
	// Machine is the key of the virtual machine, see lb.MachineKey. Empty if unknown, or if pool members are
	// addresses.
	Machine string
	// NoMachine is why the node cannot join a pool of network interfaces, or "". The flag is true while its
	// machine is still unknown.
	NoMachine string
	Awaited   bool
	// Place is the node's load balancer, if there are several.
	Place string
	// Duplicate names the node on another load balancer that is used instead, or "". See AcrossLoadBalancers.
	Duplicate string
	// Excluded is why the node is excluded from load balancers, or "".
	Excluded string
	// Leaves is true if the excluding label may be set while the node serves: an existing member remains,
	// Down.
	Leaves bool
	// Draining is why the node takes no new flows, or "". It remains a member.
	Draining string
	// Announced is true if only an announced eviction drains the node. AnnouncedAt is the time, if known.
	Announced   bool
	AnnouncedAt time.Time
}

// Equal reports whether two nodes are equal for every pool, apart from label selectors.
func (n Node) Equal(o Node) bool {
	ips, other := n.IPs, o.IPs
	at, otherAt := n.AnnouncedAt, o.AnnouncedAt
	n.IPs, o.IPs, n.AnnouncedAt, o.AnnouncedAt = nil, nil, time.Time{}, time.Time{}
	return reflect.DeepEqual(n, o) && slices.Equal(ips, other) && at.Equal(otherAt)
}

// Address returns the node's first address of a family.
func (n Node) Address(family lb.Family) (netip.Addr, bool) {
	for _, ip := range n.IPs {
		if family.Of(ip) {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

// Set is the membership of a pool.
type Set struct {
	// Addresses are sorted by name; names and IPs are unique.
	Addresses []lb.Address
	// Twins are other nodes with an address of Addresses and another machine, sorted by name. Azure decides
	// which machine has it.
	Twins []lb.Address
	// Awaited are the addresses of nodes with a still unknown machine.
	Awaited []netip.Addr
	// Absent are the nodes that host an endpoint or were selected, but are not in Addresses; sorted by name.
	Absent []Absence
	// Draining are those of Addresses that must be Down, in the same order.
	Draining []Drain
	// Leaving are the non-members that still serve and must be Down if they are in the pool; see KeepLeaving.
	Leaving []Drain
	// Kept are those of Addresses that may remain but not join. The count is of those that remain because of
	// a stale cache.
	Kept []netip.Addr
	Held int
	// Spared are those of Addresses that drain but remain up to keep the minimum available.
	Spared []Drain
	// Homeless is the number of endpoints that take traffic but have no nodeName.
	Homeless int
	// Unfit is the number of FQDN slices.
	Unfit int
}

// Absence is why a node is not a member.
type Absence struct {
	Node string
	Why  string
	// Meant is true if a label excludes the node.
	Meant bool
}

// Drain is why a member takes no new flows.
type Drain struct {
	Node string
	IP   netip.Addr
	Why  string
	// Announced and AnnouncedAt are the node's.
	Announced   bool
	AnnouncedAt time.Time
}

// String returns "node: why".
func (a Absence) String() string { return fmt.Sprintf("node %s: %s", a.Node, a.Why) }

// Missed describes the first few absent nodes not excluded by a label, each in at most the given bytes. The
// last text includes the number of further nodes.
func (s Set) Missed(few, bytes int, cut func(string, int) string) (texts []string) {
	all := slices.DeleteFunc(slices.Clone(s.Absent), func(a Absence) bool { return a.Meant })
	for _, a := range all[:min(len(all), few)] {
		texts = append(texts, cut(a.String(), bytes))
	}
	if n := len(all) - few; n > 0 {
		texts[few-1] += fmt.Sprintf(" and %d more", n)
	}
	return texts
}

// KeptOut describes the nodes excluded by a label.
func (s Set) KeptOut() (texts []string) {
	for _, a := range s.Absent {
		if a.Meant {
			texts = append(texts, a.String())
		}
	}
	return texts
}

// OfService returns the nodes that host an endpoint taking traffic, over all slices of the pool's family.
// node looks up a node by name. Without slices there are no members, never all nodes.
func OfService(slcs []Slice, node func(name string) (Node, bool), family lb.Family) Set {
	var set Set
	hosts := make(map[string]struct{})
	for _, s := range slcs {
		if s.Family == "" {
			set.Unfit++
		}
		if s.Family != family {
			continue
		}
		for _, e := range s.Endpoints {
			if !e.Takes() {
				continue
			}
			if e.Node == "" {
				set.Homeless++
				continue
			}
			hosts[e.Node] = struct{}{}
		}
	}
	b := builder{set: set, family: family, byIP: make(map[netip.Addr]int, len(hosts))}
	for _, name := range sortedKeys(hosts) {
		if n, ok := node(name); ok {
			b.add(n)
		} else {
			b.absent(name, "the cluster has no node of that name yet")
		}
	}
	return b.finish()
}

// OfNodes returns the given nodes that may take traffic.
func OfNodes(nodes iter.Seq[Node], family lb.Family) Set {
	sorted := slices.SortedFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	b := builder{family: family, byIP: make(map[netip.Addr]int, len(sorted))}
	for _, n := range sorted {
		b.add(n)
	}
	return b.finish()
}

// builder adds nodes in name order to a set.
type builder struct {
	set     Set
	family  lb.Family
	members []member
	byIP    map[netip.Addr]int // index in members
}

// member is an address and the eligible nodes that have it.
type member struct {
	ip    netip.Addr
	node  Node
	twins []Node // other than node
}

func (b *builder) add(n Node) {
	if n.Excluded != "" {
		b.set.Absent = append(b.set.Absent, Absence{Node: n.Name, Why: n.Excluded, Meant: true})
		if ip, ok := n.Address(b.family); ok && n.Leaves {
			b.set.Leaving = append(b.set.Leaving, Drain{Node: n.Name, IP: ip, Why: n.Draining})
		}
		return
	}
	ip, ok := n.Address(b.family)
	if !ok {
		b.absent(n.Name, fmt.Sprintf("it has no InternalIP of family %s", b.family))
		return
	}
	if n.NoMachine != "" {
		if n.Awaited {
			b.set.Awaited = append(b.set.Awaited, ip)
		}
		b.absent(n.Name, n.NoMachine)
		return
	}
	if n.Duplicate != "" {
		b.absent(n.Name, n.Duplicate)
		return
	}
	if at, taken := b.byIP[ip]; taken {
		b.members[at].twins = append(b.members[at].twins, n)
		return
	}
	b.byIP[ip] = len(b.members)
	b.members = append(b.members, member{ip: ip, node: n})
}

// finish returns the set. An address shared by nodes is Down only while all of them drain. The node that does
// not drain represents it, or else one with only an announced eviction.
func (b *builder) finish() Set {
	if len(b.members) == 0 {
		return b.set
	}
	doubles := false
	for i := range b.members {
		m := &b.members[i]
		if len(m.twins) == 0 {
			continue
		}
		doubles = true
		all := append([]Node{m.node}, m.twins...)
		slices.SortFunc(all, compareTwins)
		m.node, m.twins = all[0], all[1:]
		for _, n := range m.twins {
			b.absent(n.Name, fmt.Sprintf("its address %s is also that of node %s", m.ip, m.node.Name))
			if n.Machine != m.node.Machine {
				b.set.Twins = append(b.set.Twins, lb.Address{Name: n.Name, IP: m.ip, Machine: n.Machine})
			}
		}
	}
	if doubles {
		slices.SortFunc(b.members, func(a, b member) int { return cmp.Compare(a.node.Name, b.node.Name) })
		slices.SortFunc(b.set.Absent, func(a, b Absence) int { return cmp.Compare(a.Node, b.Node) })
		slices.SortFunc(b.set.Twins, func(a, b lb.Address) int { return cmp.Compare(a.Name, b.Name) })
	}
	b.set.Addresses = make([]lb.Address, 0, len(b.members)) // exact capacity: a set is retained for each pool
	for _, m := range b.members {
		n, a := m.node, lb.Address{Name: m.node.Name, IP: m.ip, Machine: m.node.Machine}
		if n.Draining != "" {
			a.AdminState = lb.Down
			b.set.Draining = append(b.set.Draining, Drain{n.Name, m.ip, n.Draining, n.Announced, n.AnnouncedAt})
		}
		b.set.Addresses = append(b.set.Addresses, a)
	}
	return b.set
}

// compareTwins orders nodes with the same address: the first determines the admin state.
func compareTwins(a, b Node) int {
	rank := func(n Node) int {
		switch {
		case n.Draining == "":
			return 0
		case n.Announced:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), b.AnnouncedAt.Compare(a.AnnouncedAt), cmp.Compare(a.Name, b.Name))
}

// Deciding returns the node that determines the state of a shared address, preferring eligible nodes. It is
// false if there is none.
func Deciding(nodes []Node) (Node, bool) {
	if len(nodes) == 0 {
		return Node{}, false
	}
	return slices.MinFunc(nodes, func(a, b Node) int {
		if out := a.Excluded != ""; out != (b.Excluded != "") {
			return map[bool]int{false: -1, true: 1}[out]
		}
		return compareTwins(a, b)
	}), true
}

func (b *builder) absent(node, why string) {
	b.set.Absent = append(b.set.Absent, Absence{Node: node, Why: why})
}

// Fingerprint hashes addresses, machines and admin states. It detects an unchanged membership without
// retaining the addresses.
func Fingerprint(members ...[]lb.Address) uint64 {
	h := fnv.New64a()
	text := func(s string) {
		var length [4]byte
		binary.LittleEndian.PutUint32(length[:], uint32(len(s)))
		_, _ = h.Write(length[:]) // hash.Hash.Write returns no error
		_, _ = h.Write([]byte(s))
	}
	for _, a := range slices.Concat(members...) {
		text(a.Name)
		ip := a.IP.As16()
		_, _ = h.Write(ip[:])
		text(a.Machine)
		text(a.AdminState)
	}
	return h.Sum64()
}

// Fingerprint covers addresses, twins and awaited addresses.
func (s Set) Fingerprint() uint64 { return Fingerprint(s.Addresses, s.Twins, Nameless(s.Awaited)) }

// Nameless returns addresses without node names.
func Nameless(ips []netip.Addr) []lb.Address {
	all := make([]lb.Address, len(ips))
	for i, ip := range ips {
		all[i].IP = ip
	}
	return all
}

func sortedKeys(m map[string]struct{}) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
