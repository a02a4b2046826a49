// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// CodeAddressPool is the fault code of a pool that holds addresses where its members are to be
// network interfaces.
const CodeAddressPool = "AddressPool"

// CodeOutboundPool is the fault code of a pool of outbound rules that Weir did not make.
const CodeOutboundPool = "OutboundPool"

// Machines is how the nodes of a pool of network interfaces become its members.
type Machines struct {
	Family lb.Family
	// Configuration and Every are those of nic.Pool.
	Configuration string
	Every         bool
	// Of returns the machine of the node of a name, or why it is not known.
	Of func(node string) (nic.Machine, error)
}

// HandOver is what a pool of network interfaces has to become, for who writes machines.
type HandOver struct {
	Target nic.Target
	// joins are the machines that belong in the pool and that it does not show.
	joins []nic.Machine
	// waits says which nodes have no machine that could join, and why.
	waits []string
}

// Level reports whether the pool shows just the machines that belong in it.
func (h *HandOver) Level() bool { return len(h.joins)+len(h.Target.Leaves)+len(h.waits) == 0 }

// Fingerprint is equal for equal targets, and never zero.
func (h *HandOver) Fingerprint() uint64 {
	sum := fnv.New64a()
	add := func(text string) {
		var length [4]byte
		binary.LittleEndian.PutUint32(length[:], uint32(len(text))) //nolint:gosec // ids are short
		_, _ = sum.Write(length[:])                                 // a hash's Write returns no error
		_, _ = sum.Write([]byte(text))
	}
	add(fmt.Sprint(h.Target.Configuration, h.Target.Every))
	for _, all := range [][]nic.Machine{h.Target.Members, h.Target.Leaves} {
		for _, m := range all {
			add(m.Key())
		}
		add("")
	}
	return max(sum.Sum64(), 1)
}

// PrepareMembers computes what a pool of network interfaces has to become: which machines belong in
// it and which leave, and which admin states those have that are in it; write says whether the
// latter have to be written. observed has the machine of each interface. Ours are the nodes that are
// on record or of this cluster: an instance that is no node yet, or no more, keeps what its scale set
// gave it.
func (r *Result) PrepareMembers(observed lb.Pool, want Desired, adminState bool) (write bool, intent *Intent, err error) {
	here := nodesIn(observed, want)
	want = want.in(here)
	recorded := want.Recorded
	r.Wanted = want.Addresses
	r.reads(recorded)
	if err := refuses(observed, want); err != nil {
		r.Outcome = Refused
		return false, nil, err
	}
	has := owned(lb.Pool{Addresses: here}, want, adminState)
	leaving := leavingOf(here, want, has)
	r.HandOver = handOver(observed.ID, want, here, leaving)
	r.written = sortedIPs(want.Addresses)
	if adminState {
		states := want
		states.Addresses = slices.Concat(want.Addresses, stayDown(leaving, has))
		r.Todo = direct(observed, states, slices.Collect(maps.Keys(has.down)))
		r.down = sorted(r.Todo.down)
	} else { // nobody takes back what was left Down, and it stays known
		r.Todo = Change{Next: observed}
		r.down = leftDown(recorded.Down, want.Addresses, lb.Pool{Addresses: here})
	}
	r.Todo.joinable, r.Todo.compared = true, true
	r.Todo.added, r.Todo.removed = lacking(want.Addresses, here), sortedIPs(leaving)
	r.Todo.Foreign = len(observed.Addresses) - len(here)
	r.Members = len(r.HandOver.joins)+len(r.HandOver.Target.Leaves) > 0
	write, err = r.mustWrite(observed)
	if !r.HandOver.Level() && err != nil { // a machine joins or leaves beside it
		write, err = false, nil
	}
	if err != nil || !write && r.HandOver.Level() {
		return false, nil, err
	}
	if intent = r.record(recorded, has); intent != nil {
		intent.Add, intent.Remove = len(r.HandOver.joins), len(r.HandOver.Target.Leaves)
	}
	return write, intent, nil
}

// nodesIn returns the interfaces of nodes, by the addresses of those, and of machines whose address is
// on record: their nodes are gone, and they are not.
func nodesIn(observed lb.Pool, want Desired) (here []lb.Address) {
	for _, a := range observed.Addresses {
		if ip, ok := want.ofNode(a); ok {
			a.IP = ip
			here = append(here, a)
		}
	}
	return here
}

// ofNode returns the address by which the interface of a node is known, or of what was one.
func (d Desired) ofNode(a lb.Address) (netip.Addr, bool) {
	if ip, ok := d.AddressOf(a.Machine); ok {
		return ip, true
	}
	return a.IP, a.Machine != "" && slices.Contains(d.Recorded.Written, a.IP)
}

// leavingOf returns the interfaces that are ours and that nobody wants.
func leavingOf(here []lb.Address, want Desired, has ours) (leaving []lb.Address) {
	wanted := make(map[netip.Addr]bool, len(want.Addresses))
	for _, a := range want.Addresses {
		wanted[a.IP] = true
	}
	for _, a := range here {
		if _, mine := has.written[a.IP]; !wanted[a.IP] && (mine || want.Ours(a.IP)) {
			leaving = append(leaving, a)
		}
	}
	return leaving
}

// stayDown returns those that are Down by us and leave: until they have, they take no flows.
func stayDown(leaving []lb.Address, has ours) []lb.Address {
	return slices.DeleteFunc(slices.Clone(leaving), func(a lb.Address) bool {
		_, byUs := has.down[a.IP]
		return !byUs || !isDown(a)
	})
}

// handOver returns what those who write machines have to do for a pool. here are the interfaces of
// nodes in it, leaving those of them that have to go.
func handOver(id lb.PoolID, want Desired, here, leaving []lb.Address) *HandOver {
	by := want.Machines
	h := &HandOver{Target: nic.Target{Pool: nic.Pool{ID: id, Family: by.Family, Configuration: by.Configuration, Every: by.Every}}}
	there := make(map[netip.Addr]bool, len(here))
	for _, a := range here {
		there[a.IP] = true
	}
	for _, a := range want.Addresses {
		m, err := by.Of(a.Name)
		switch {
		case err == nil && !there[a.IP]:
			h.joins = append(h.joins, m)
			fallthrough
		case err == nil:
			h.Target.Members = append(h.Target.Members, m)
		case !there[a.IP]:
			h.waits = append(h.waits, fmt.Sprintf("node %s: %s", a.Name, err))
		}
	}
	for _, a := range leaving {
		m, err := nic.ParseMachine("azure://" + a.Machine)
		if err != nil {
			h.waits = append(h.waits, fmt.Sprintf("%s, which leaves: %s", a.IP, err))
			continue
		}
		h.Target.Leaves = append(h.Target.Leaves, m)
	}
	for _, all := range []*[]nic.Machine{&h.Target.Members, &h.Target.Leaves} {
		slices.SortFunc(*all, func(a, b nic.Machine) int { return cmp.Compare(a.Key(), b.Key()) })
		*all = slices.CompactFunc(*all, func(a, b nic.Machine) bool { return a.Key() == b.Key() })
	}
	h.Target.Shown = h.Level()
	return h
}

// refuses says why machines join and leave no pool that is as it was read.
func refuses(observed lb.Pool, want Desired) error {
	switch {
	case !observed.NIC && len(observed.Addresses) > 0:
		return errAddresses(observed.ID)
	case observed.Outbound && !want.Alone:
		return errOutbound(observed.ID)
	}
	return nil
}

func errAddresses(pool lb.PoolID) error {
	return &fault.Fault{
		Class: fault.Terminal, Code: CodeAddressPool, Reason: "address_pool",
		Err: fmt.Errorf("pool %s holds IP addresses, and its members are to be network interfaces: Azure does not mix them", pool.Name),
	}
}

func errOutbound(pool lb.PoolID) error {
	return &fault.Fault{
		Class: fault.Terminal, Code: CodeOutboundPool, Reason: "outbound_pool",
		Err: fmt.Errorf("pool %s has outbound rules: who leaves it has no way out", pool.Name),
	}
}
