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
	"strings"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// CodeAddressPool means that a pool holds addresses instead of network interfaces.
const CodeAddressPool = "AddressPool"

// CodeOutboundPool means that a pool has outbound rules, and Weir did not make it.
const CodeOutboundPool = "OutboundPool"

// Machines maps nodes to the machines of a pool of network interfaces.
type Machines struct {
	Family lb.Family
	// See nic.Pool.
	Configuration string
	Every         bool
	// Of returns a node's machine, or why it is unknown.
	Of func(node string) (nic.Machine, error)
}

// HandOver is a pool's desired machines, for the machine updater.
type HandOver struct {
	Target nic.Target
	// joins are wanted addresses without a machine in the pool.
	joins []joining
	// waits are why nodes have no machine yet.
	waits []string
}

// joining is an address with its machines: several if several nodes claim it.
type joining struct {
	ip       netip.Addr
	nodes    []string
	machines []nic.Machine
}

// Unusable is a node of the pool with a machine that cannot join.
type Unusable struct {
	Node string
	IP   netip.Addr
	Why  string
}

// Level reports whether the pool has exactly its machines.
func (h *HandOver) Level() bool { return len(h.joins)+len(h.Target.Leaves)+len(h.waits) == 0 }

func (h *HandOver) drops(unusable []nic.MachineWait) (nodes []Unusable) {
	reason := make(map[string]string, len(unusable))
	for _, w := range unusable {
		reason[w.Machine.Key()] = w.Why
	}
	h.joins = slices.DeleteFunc(h.joins, func(j joining) bool {
		if slices.ContainsFunc(j.machines, func(m nic.Machine) bool { return reason[m.Key()] == "" }) {
			return false
		}
		for i, m := range j.machines {
			nodes = append(nodes, Unusable{Node: j.nodes[i], IP: j.ip, Why: reason[m.Key()]})
		}
		return true
	})
	return nodes
}

// Fingerprint is equal for equal targets, and never zero.
func (h *HandOver) Fingerprint() uint64 {
	sum := fnv.New64a()
	add := func(text string) {
		var length [4]byte
		binary.LittleEndian.PutUint32(length[:], uint32(len(text))) //nolint:gosec // ids are short
		_, _ = sum.Write(length[:])                                 // hash.Hash never returns an error
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

// PrepareMembers computes the machines that have to join and leave a pool, and its admin states;
// write is true if these have to be written. observed must have the machine of each interface.
// Machines that are neither recorded nor nodes of this cluster are kept: their scale set may have
// added them.
func (r *Result) PrepareMembers(observed lb.Pool, want Desired, adminState bool) (write bool, intent *Intent, err error) {
	present := nodesIn(observed, want)
	want = want.in(present)
	recorded := want.Recorded
	r.Wanted = want.Addresses
	r.reads(recorded)
	if err := refuses(observed, want); err != nil {
		r.Outcome = Refused
		return false, nil, err
	}
	managed := owned(lb.Pool{Addresses: present}, want, adminState)
	machines, unknown := machinesOf(want)
	leaving := leavingOf(present, want, machines, unknown, managed)
	r.HandOver = handOver(observed.ID, want, present, leaving, machines, unknown)
	r.written, r.instances = staysOurs(present, want, machines, unknown, managed)
	r.twins, r.awaited, r.shown = want.Twins, want.Awaited, shownIn(observed)
	if adminState {
		states := want
		states.Addresses = slices.Concat(want.Addresses, stayDown(leaving, managed))
		r.Todo = direct(observed, states, slices.Collect(maps.Keys(managed.down)))
		r.down = sorted(r.Todo.down)
	} else { // resets nothing; Down stays recorded
		r.Todo = Change{Next: observed}
		r.down = leftDown(recorded.Down, want.Addresses, lb.Pool{Addresses: present})
	}
	r.Todo.joinable, r.Todo.compared = true, true
	r.Todo.added, r.Todo.removed = lacking(want.Addresses, present), sortedIPs(leaving)
	r.Todo.Foreign = len(observed.Addresses) - len(present)
	r.Members = len(r.HandOver.joins)+len(r.HandOver.Target.Leaves) > 0
	write, err = r.mustWrite(observed)
	if !r.HandOver.Level() && err != nil { // a machine is joining or leaving
		write, err = false, nil
	}
	if err != nil || !write && r.HandOver.Level() {
		return false, nil, err
	}
	if intent = r.record(recorded, managed); intent != nil {
		intent.Add, intent.Remove = len(r.HandOver.joins), len(r.HandOver.Target.Leaves)
	}
	return write, intent, nil
}

// nodesIn returns the interfaces of nodes, present or recorded, with their addresses.
func nodesIn(observed lb.Pool, want Desired) (present []lb.Address) {
	for _, a := range observed.Addresses {
		if ip, ok := want.ofNode(a); ok {
			a.IP, a.Machine = ip, lb.MachineKey(a.Machine)
			present = append(present, a)
		}
	}
	return present
}

// shownIn hashes the pool's network interfaces.
func shownIn(observed lb.Pool) uint64 {
	names := make([]string, len(observed.Addresses))
	for i, a := range observed.Addresses {
		names[i] = strings.ToLower(a.Interface)
	}
	slices.Sort(names)
	sum := fnv.New64a()
	for _, name := range names {
		_, _ = sum.Write([]byte(name + "\n")) // hash.Hash never returns an error
	}
	return max(sum.Sum64(), 1)
}

// ofNode returns the address of an interface's node, present or recorded.
func (d Desired) ofNode(a lb.Address) (netip.Addr, bool) {
	if ip, ok := d.AddressOf(a.Machine); ok {
		return ip, true
	}
	if ip, ok := d.Recorded.Instances[lb.MachineKey(a.Machine)]; ok {
		return ip, true
	}
	return a.IP, a.Machine != "" && slices.Contains(d.Recorded.Written, a.IP)
}

// memberMachine is the machine of a wanted node, or why it is unknown.
type memberMachine struct {
	node string
	ip   netip.Addr
	nic.Machine
	err error
}

// machinesOf returns the wanted machines. unknown are addresses of nodes with an unknown machine;
// members with one of them stay.
func machinesOf(want Desired) (all []memberMachine, unknown map[netip.Addr]bool) {
	all, unknown = make([]memberMachine, 0, len(want.Addresses)+len(want.Twins)), map[netip.Addr]bool{}
	for _, ip := range want.Awaited {
		unknown[ip] = true
	}
	for _, a := range slices.Concat(want.Addresses, want.Twins) {
		m, err := want.Machines.Of(a.Name)
		if all = append(all, memberMachine{a.Name, a.IP, m, err}); err != nil {
			unknown[a.IP] = true
		}
	}
	return all, unknown
}

// leavingOf returns managed interfaces that are not wanted.
func leavingOf(present []lb.Address, want Desired, machines []memberMachine, unknown map[netip.Addr]bool, managed ours) (leaving []lb.Address) {
	wanted := make(map[string]bool, len(machines))
	for _, m := range machines {
		if m.err == nil {
			wanted[m.Key()] = true
		}
	}
	for _, a := range present {
		if _, isManaged := managed.written[a.IP]; !wanted[a.Machine] && !unknown[a.IP] && (isManaged || want.Ours(a.IP)) {
			leaving = append(leaving, a)
		}
	}
	return leaving
}

// staysOurs returns the record of a pool in sync, including members with an unknown machine.
func staysOurs(present []lb.Address, want Desired, machines []memberMachine, unknown map[netip.Addr]bool, managed ours) (written []netip.Addr, instances map[string]netip.Addr) {
	written = sortedIPs(want.Addresses)
	keep := func(machine string, ip netip.Addr) {
		if instances == nil {
			instances = map[string]netip.Addr{}
		}
		instances[machine] = ip
	}
	for _, m := range machines {
		if m.err == nil && m.Uniform() {
			keep(m.Key(), m.ip)
		}
	}
	for _, a := range present {
		if _, isManaged := managed.written[a.IP]; isManaged && unknown[a.IP] {
			written = append(written, a.IP)
			if _, ok := want.Recorded.Instances[a.Machine]; ok {
				keep(a.Machine, a.IP)
			}
		}
	}
	return sorted(written), instances
}

// stayDown returns leaving interfaces that Weir set Down: they stay Down until they have left.
func stayDown(leaving []lb.Address, managed ours) []lb.Address {
	return slices.DeleteFunc(slices.Clone(leaving), func(a lb.Address) bool {
		_, byWeir := managed.down[a.IP]
		return !byWeir || !isDown(a)
	})
}

// handOver builds the machine updater's target. present are the nodes' interfaces in the pool, and
// leaving those that have to go.
func handOver(id lb.PoolID, want Desired, present, leaving []lb.Address, machines []memberMachine, unknown map[netip.Addr]bool) *HandOver {
	by := want.Machines
	h := &HandOver{Target: nic.Target{Pool: nic.Pool{ID: id, Family: by.Family, Configuration: by.Configuration, Every: by.Every}}}
	there, shown := make(map[string]bool, len(present)), make(map[netip.Addr]bool, len(present))
	for _, a := range present {
		there[a.Machine], shown[a.IP] = true, shown[a.IP] || unknown[a.IP]
	}
	for _, m := range machines {
		shown[m.ip] = shown[m.ip] || m.err == nil && there[m.Key()]
	}
	at := map[netip.Addr]int{} // index in joins
	for _, m := range machines {
		switch {
		case m.err != nil && !shown[m.ip]:
			h.waits = append(h.waits, fmt.Sprintf("node %s: %s", m.node, m.err))
		case m.err != nil:
		default:
			h.Target.Members = append(h.Target.Members, m.Machine)
		}
		if m.err != nil || shown[m.ip] {
			continue
		}
		i, known := at[m.ip]
		if !known {
			i, at[m.ip] = len(h.joins), len(h.joins)
			h.joins = append(h.joins, joining{ip: m.ip})
		}
		h.joins[i].nodes, h.joins[i].machines = append(h.joins[i].nodes, m.node), append(h.joins[i].machines, m.Machine)
		h.Target.Lacks = append(h.Target.Lacks, m.Machine)
	}
	h.keeps(present, unknown)
	for _, a := range leaving {
		m, err := nic.ParseMachine("azure://" + a.Machine)
		if err != nil {
			h.waits = append(h.waits, fmt.Sprintf("%s, which leaves: %s", a.IP, err))
			continue
		}
		h.Target.Leaves = append(h.Target.Leaves, m)
	}
	for _, all := range []*[]nic.Machine{&h.Target.Members, &h.Target.Leaves, &h.Target.Lacks} {
		slices.SortFunc(*all, func(a, b nic.Machine) int { return cmp.Compare(a.Key(), b.Key()) })
		*all = slices.CompactFunc(*all, func(a, b nic.Machine) bool { return a.Key() == b.Key() })
	}
	return h
}

func (h *HandOver) keeps(present []lb.Address, unknown map[netip.Addr]bool) {
	for _, a := range present {
		if m, err := nic.ParseMachine("azure://" + a.Machine); err == nil && unknown[a.IP] {
			h.Target.Members = append(h.Target.Members, m)
		}
	}
}

// refuses returns why machines cannot join or leave the pool.
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
