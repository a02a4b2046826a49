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

// TakesTraffic reports whether the endpoint makes its node a member. A terminating but serving endpoint drains open
// connections; the failing healthCheckNodePort keeps new flows away.
func (e Endpoint) TakesTraffic() bool { return e.Ready || e.Terminating && e.Serving }

// IsStarting reports whether the endpoint may become ready.
func (e Endpoint) IsStarting() bool { return !e.Ready && !e.Terminating }

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
	NoMachine      string
	MachinePending bool
	// Place is the node's load balancer, if there are several.
	Place string
	// Duplicate names the node on another load balancer that is used instead, or "". See ResolveDuplicate.
	Duplicate string
	// Excluded is why the node is excluded from load balancers, or "".
	Excluded string
	// StaysWhileServing is true if the excluding label may be set while the node serves: an existing member remains,
	// Down.
	StaysWhileServing bool
	// DrainReason is why the node takes no new flows, or "". It remains a member.
	DrainReason string
	// DrainsAtOnce is true if the node is Down even where no other member is up; see KeepLastUp.
	DrainsAtOnce bool
	// EvictionAnnounced is true if only an announced eviction drains the node. EvictionAnnouncedAt is the time, if known.
	EvictionAnnounced   bool
	EvictionAnnouncedAt time.Time
}

// Equal reports whether two nodes are equal for every pool, apart from label selectors.
func (n Node) Equal(o Node) bool {
	ips, other := n.IPs, o.IPs
	at, otherAt := n.EvictionAnnouncedAt, o.EvictionAnnouncedAt
	n.IPs, o.IPs, n.EvictionAnnouncedAt, o.EvictionAnnouncedAt = nil, nil, time.Time{}, time.Time{}
	return reflect.DeepEqual(n, o) && slices.Equal(ips, other) && at.Equal(otherAt)
}

// Address returns the node's first address of a family.
func (n Node) Address(family lb.Family) (netip.Addr, bool) {
	for _, ip := range n.IPs {
		if family.Contains(ip) {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

// Set is the membership of a pool.
type Set struct {
	// Addresses are sorted by name; names and IPs are unique.
	Addresses []lb.Address
	// Alternates are other nodes with an address of Addresses and another machine, sorted by name. Azure decides
	// which machine has it.
	Alternates []lb.Address
	// PendingAddresses are the addresses of nodes with a still unknown machine.
	PendingAddresses []netip.Addr
	// NonMembers are the nodes that host an endpoint or were selected, but are not in Addresses; sorted by name.
	NonMembers []NonMember
	// Draining are those of Addresses that must be Down, in the same order.
	Draining []Drain
	// ServingExcluded are the non-members that still serve and must be Down if they are in the pool; see RetainLeaving.
	ServingExcluded []Drain
	// Retained are those of Addresses that may remain but not join. The count is of those that remain because of
	// a stale cache.
	Retained      []netip.Addr
	RetainedStale int
	// KeptUp are those of Addresses that drain but remain up to keep the minimum available.
	KeptUp []Drain
	// LastUp are those of Addresses that drain but remain up while no other member is; see KeepLastUp.
	LastUp []Drain
	// Starting are nodes that host only endpoints that start and could be members; sorted by name. EarlyJoin decides
	// whether they are; see JoinEarly.
	Starting  []lb.Address
	EarlyJoin EarlyJoin
	// DeletedMayServe is true if nodes that the cluster no longer has may serve; see RetainDeleted.
	DeletedMayServe bool
	// EndpointsWithoutNode is the number of endpoints that take traffic but have no nodeName.
	EndpointsWithoutNode int
	// UnsupportedSlices is the number of FQDN slices.
	UnsupportedSlices int
}

// NonMember is why a node is not a member.
type NonMember struct {
	Node   string
	Reason string
	// ByLabel is true if a label excludes the node.
	ByLabel bool
}

// Drain is why a member takes no new flows.
type Drain struct {
	Node   string
	IP     netip.Addr
	Reason string
	// AtOnce, EvictionAnnounced and EvictionAnnouncedAt are the node's.
	AtOnce              bool
	EvictionAnnounced   bool
	EvictionAnnouncedAt time.Time
}

// String returns "node: why".
func (n NonMember) String() string { return fmt.Sprintf("node %s: %s", n.Node, n.Reason) }

// DescribeMissing describes the first few absent nodes not excluded by a label, each in at most the given bytes. The
// last text includes the number of further nodes.
func (s Set) DescribeMissing(few, bytes int, cut func(string, int) string) (texts []string) {
	missing := slices.DeleteFunc(slices.Clone(s.NonMembers), func(a NonMember) bool { return a.ByLabel })
	for _, a := range missing[:min(len(missing), few)] {
		texts = append(texts, cut(a.String(), bytes))
	}
	if n := len(missing) - few; n > 0 {
		texts[few-1] += fmt.Sprintf(" and %d more", n)
	}
	return texts
}

// DescribeExcluded describes the nodes excluded by a label.
func (s Set) DescribeExcluded() (texts []string) {
	for _, a := range s.NonMembers {
		if a.ByLabel {
			texts = append(texts, a.String())
		}
	}
	return texts
}

// OfService returns the nodes that host an endpoint taking traffic, over all slices of the pool's family.
// node looks up a node by name. Without slices there are no members, never all nodes.
func OfService(slcs []Slice, node func(name string) (Node, bool), family lb.Family) Set {
	var set Set
	hosts, starts := make(map[string]struct{}), map[string]struct{}(nil)
	for _, s := range slcs {
		if s.Family == "" {
			set.UnsupportedSlices++
		}
		if s.Family != family {
			continue
		}
		for _, e := range s.Endpoints {
			if e.IsStarting() && e.Node != "" {
				if starts == nil {
					starts = map[string]struct{}{}
				}
				starts[e.Node] = struct{}{}
			}
			if !e.TakesTraffic() {
				continue
			}
			if e.Node == "" {
				set.EndpointsWithoutNode++
				continue
			}
			hosts[e.Node] = struct{}{}
		}
	}
	b := builder{set: set, family: family, byIP: make(map[netip.Addr]int, len(hosts))}
	for _, name := range sortedKeys(hosts) {
		if n, ok := node(name); ok {
			b.addNode(n)
		} else {
			b.addNonMember(name, "the cluster has no node of that name yet")
			b.set.DeletedMayServe = true
		}
	}
	set = b.buildSet()
	set.Starting = startingNodes(starts, node, family, set.Addresses)
	return set
}

// startingNodes returns those of the nodes that may take new flows and are no members yet.
func startingNodes(names map[string]struct{}, node func(name string) (Node, bool), family lb.Family, members []lb.Address) []lb.Address {
	if len(names) == 0 {
		return nil
	}
	b := builder{family: family, byIP: make(map[netip.Addr]int, len(names))}
	for _, name := range sortedKeys(names) {
		if n, ok := node(name); ok && n.DrainReason == "" {
			b.addNode(n)
		}
	}
	present := make(map[netip.Addr]struct{}, len(members))
	for _, a := range members {
		present[a.IP] = struct{}{}
	}
	starting := slices.DeleteFunc(b.buildSet().Addresses, func(a lb.Address) bool { _, ok := present[a.IP]; return ok })
	if len(starting) == 0 {
		return nil
	}
	return starting
}

// OfNodes returns the given nodes that may take traffic.
func OfNodes(nodes iter.Seq[Node], family lb.Family) Set {
	sorted := slices.SortedFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	b := builder{set: Set{DeletedMayServe: true}, family: family, byIP: make(map[netip.Addr]int, len(sorted))}
	for _, n := range sorted {
		b.addNode(n)
	}
	return b.buildSet()
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
	ip         netip.Addr
	node       Node
	duplicates []Node // other than node
}

func (b *builder) addNode(n Node) {
	if n.Excluded != "" {
		b.set.NonMembers = append(b.set.NonMembers, NonMember{Node: n.Name, Reason: n.Excluded, ByLabel: true})
		if ip, ok := n.Address(b.family); ok && n.StaysWhileServing {
			b.set.ServingExcluded = append(b.set.ServingExcluded, Drain{Node: n.Name, IP: ip, Reason: n.DrainReason, AtOnce: n.DrainsAtOnce})
		}
		return
	}
	ip, ok := n.Address(b.family)
	if !ok {
		b.addNonMember(n.Name, fmt.Sprintf("it has no InternalIP of family %s", b.family))
		b.set.DeletedMayServe = b.set.DeletedMayServe || len(n.IPs) == 0 // the node may be recreated, and its address not set yet
		return
	}
	if n.NoMachine != "" {
		if n.MachinePending {
			b.set.PendingAddresses = append(b.set.PendingAddresses, ip)
		}
		b.addNonMember(n.Name, n.NoMachine)
		return
	}
	if n.Duplicate != "" {
		b.addNonMember(n.Name, n.Duplicate)
		return
	}
	if at, taken := b.byIP[ip]; taken {
		b.members[at].duplicates = append(b.members[at].duplicates, n)
		return
	}
	b.byIP[ip] = len(b.members)
	b.members = append(b.members, member{ip: ip, node: n})
}

// buildSet returns the set. An address shared by nodes is Down only while all of them drain. The node that does
// not drain represents it, or else one with only an announced eviction.
func (b *builder) buildSet() Set {
	if len(b.members) == 0 {
		return b.set
	}
	doubles := false
	for i := range b.members {
		m := &b.members[i]
		if len(m.duplicates) == 0 {
			continue
		}
		doubles = true
		nodes := append([]Node{m.node}, m.duplicates...)
		slices.SortFunc(nodes, compareDuplicates)
		m.node, m.duplicates = nodes[0], nodes[1:]
		for _, n := range m.duplicates {
			b.addNonMember(n.Name, fmt.Sprintf("its address %s is also that of node %s", m.ip, m.node.Name))
			if n.Machine != m.node.Machine {
				b.set.Alternates = append(b.set.Alternates, lb.Address{Name: n.Name, IP: m.ip, Machine: n.Machine})
			}
		}
	}
	if doubles {
		slices.SortFunc(b.members, func(a, b member) int { return cmp.Compare(a.node.Name, b.node.Name) })
		slices.SortFunc(b.set.NonMembers, func(a, b NonMember) int { return cmp.Compare(a.Node, b.Node) })
		slices.SortFunc(b.set.Alternates, func(a, b lb.Address) int { return cmp.Compare(a.Name, b.Name) })
	}
	b.set.Addresses = make([]lb.Address, 0, len(b.members)) // exact capacity: a set is retained for each pool
	for _, m := range b.members {
		n, a := m.node, lb.Address{Name: m.node.Name, IP: m.ip, Machine: m.node.Machine}
		if n.DrainReason != "" {
			a.AdminState = lb.Down
			b.set.Draining = append(b.set.Draining, Drain{n.Name, m.ip, n.DrainReason, n.DrainsAtOnce, n.EvictionAnnounced, n.EvictionAnnouncedAt})
		}
		b.set.Addresses = append(b.set.Addresses, a)
	}
	return b.set
}

// compareDuplicates orders nodes with the same address: the first determines the admin state.
func compareDuplicates(a, b Node) int {
	rank := func(n Node) int {
		switch {
		case n.DrainReason == "":
			return 0
		case n.EvictionAnnounced:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), b.EvictionAnnouncedAt.Compare(a.EvictionAnnouncedAt), cmp.Compare(a.Name, b.Name))
}

// PreferredNode returns the node that determines the state of a shared address, preferring eligible nodes. It is
// false if there is none.
func PreferredNode(nodes []Node) (Node, bool) {
	if len(nodes) == 0 {
		return Node{}, false
	}
	return slices.MinFunc(nodes, func(a, b Node) int {
		if out := a.Excluded != ""; out != (b.Excluded != "") {
			return map[bool]int{false: -1, true: 1}[out]
		}
		return compareDuplicates(a, b)
	}), true
}

func (b *builder) addNonMember(node, reason string) {
	b.set.NonMembers = append(b.set.NonMembers, NonMember{Node: node, Reason: reason})
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
func (s Set) Fingerprint() uint64 {
	return Fingerprint(s.Addresses, s.Alternates, UnnamedAddresses(s.PendingAddresses))
}

// UnnamedAddresses returns addresses without node names.
func UnnamedAddresses(ips []netip.Addr) []lb.Address {
	addresses := make([]lb.Address, len(ips))
	for i, ip := range ips {
		addresses[i].IP = ip
	}
	return addresses
}

func sortedKeys(m map[string]struct{}) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
