// SPDX-License-Identifier: Apache-2.0

// Package membership decides which nodes belong in a backend pool. It is pure:
// slices and nodes go in as values, and an address set comes out.
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

// Slice is one EndpointSlice of a Service.
type Slice struct {
	// Family is the slice's address type; empty for one that holds no IP
	// addresses (FQDN), which never makes a node a member.
	Family    lb.Family
	Endpoints []Endpoint
}

// Endpoint is one endpoint of a slice, with the nil conditions of the API
// already resolved.
type Endpoint struct {
	// Node is empty if the API does not say where the endpoint runs.
	Node        string
	Ready       bool
	Serving     bool
	Terminating bool
}

// Takes reports whether the endpoint makes its node a member. One that is
// terminating but still serving drains open connections; the failing
// healthCheckNodePort already keeps new flows away from it.
func (e Endpoint) Takes() bool { return e.Ready || e.Terminating && e.Serving }

// Node is a node of the cluster, as far as it decides about members: there is no other input. Where a
// pool takes some nodes alone, it is the node as it is to that pool.
type Node struct {
	Name string
	// UID tells apart nodes that have had one name.
	UID string
	// IPs are the InternalIP addresses in the order of the node's status.
	IPs []netip.Addr
	// Machine is the key of the virtual machine, see lb.MachineKey. It is empty if it is not known, or if
	// the members of the pool are addresses.
	Machine string
	// NoMachine is why the node can be no member of a pool of network interfaces; empty if it can.
	// Awaited is true if its machine is yet to be told.
	NoMachine string
	Awaited   bool
	// Place is the load balancer that the node is on, where there are several.
	Place string
	// Duplicate says which node of another load balancer counts instead of this one; empty if this one counts. See
	// AcrossLoadBalancers.
	Duplicate string
	// Excluded is why the node never takes traffic from a load balancer;
	// empty for one that may.
	Excluded string
	// Leaves is true if a label keeps it out that may come while it serves: it stays, Down, where it
	// is a member.
	Leaves bool
	// Draining is why the node is to take no new flows any more; empty for one that may.
	// It stays a member.
	Draining string
	// Announced is true if nothing but an announced eviction has it drain. AnnouncedAt is when
	// that was, as far as is known.
	Announced   bool
	AnnouncedAt time.Time
}

// Equal reports whether two nodes are the same to every pool. Labels select nodes besides.
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
	// Addresses are sorted by name; neither a name nor an IP occurs twice.
	Addresses []lb.Address
	// Twins are further nodes that have an address of Addresses and another machine, sorted by name. Azure
	// knows which of the machines has it.
	Twins []lb.Address
	// Awaited are the addresses of nodes whose machine is yet to be told.
	Awaited []netip.Addr
	// Absent are the nodes that host an endpoint, or were selected, and are not
	// in Addresses all the same, sorted by name.
	Absent []Absence
	// Draining are those of Addresses that are to be Down, in the same order.
	Draining []Drain
	// Leaving are those of Absent that serve, and have to be Down where they are members; see
	// KeepLeaving.
	Leaving []Drain
	// Kept are those of Addresses that stay where they are in the pool, and do not join it. Held
	// counts those of them that stay because what is known of the cluster may be old.
	Kept []netip.Addr
	Held int
	// Spared are those of Addresses that drain and yet stay up; see Floor.
	Spared []Drain
	// Homeless counts endpoints that take traffic and name no node.
	Homeless int
	// Unfit counts slices that hold no IP addresses (FQDN).
	Unfit int
}

// Absence says why a node is not a member.
type Absence struct {
	Node string
	Why  string
	// Meant is true if a label keeps the node out of every pool: somebody wants it so.
	Meant bool
}

// Drain says why a member is to take no new flows.
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

// Missed says of the first few nodes that are no members though no label says so why, each in a text
// of at most so many bytes; the last tells how many more there are.
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

// KeptOut says of each node that a label keeps out which it is.
func (s Set) KeptOut() (texts []string) {
	for _, a := range s.Absent {
		if a.Meant {
			texts = append(texts, a.String())
		}
	}
	return texts
}

// OfService returns the nodes that host, in any of a Service's slices of the
// pool's family, an endpoint that takes traffic. node looks a node up by name.
// No slices means no members, never all nodes.
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

// OfNodes returns all given nodes that may take traffic.
func OfNodes(nodes iter.Seq[Node], family lb.Family) Set {
	sorted := slices.SortedFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	b := builder{family: family, byIP: make(map[netip.Addr]int, len(sorted))}
	for _, n := range sorted {
		b.add(n)
	}
	return b.finish()
}

// builder adds nodes, in the order of their names, to a set.
type builder struct {
	set     Set
	family  lb.Family
	members []member
	byIP    map[netip.Addr]int // index in members
}

// member is an address, and the nodes that have it and may be members.
type member struct {
	ip    netip.Addr
	node  Node
	twins []Node // others than node
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

// finish returns the set. An address that several nodes have is Down while all of them drain: it is known
// by one that does not, or by one that only an announced eviction has drain.
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
	b.set.Addresses = make([]lb.Address, 0, len(b.members)) // a set is kept for each pool: it has no room for more
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

// compareTwins orders nodes that have one address: the first decides about its admin state.
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

// Deciding returns the node that decides about an address that all of these have: one that may be a member
// rather than one that is kept out. It is false if there is none.
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

// Fingerprint is equal for equal sets of addresses and machines, and of those that are Down. It serves
// to recognize that a change did not change the membership, without keeping the addresses.
func Fingerprint(members ...[]lb.Address) uint64 {
	h := fnv.New64a()
	text := func(s string) {
		var length [4]byte
		binary.LittleEndian.PutUint32(length[:], uint32(len(s)))
		_, _ = h.Write(length[:]) // a hash's Write returns no error
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

// Fingerprint is that of the addresses and twins, and of what is awaited: an address stays only as long.
func (s Set) Fingerprint() uint64 { return Fingerprint(s.Addresses, s.Twins, Nameless(s.Awaited)) }

// Nameless returns addresses without the names of their nodes.
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
