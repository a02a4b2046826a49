// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// CodeAddressPool means that a pool holds addresses instead of network interfaces.
const CodeAddressPool = "AddressPool"

// CodeOutboundPool means that a pool has outbound rules, and Weir did not make it.
const CodeOutboundPool = "OutboundPool"

// Machines maps nodes to the machines of a pool of network interfaces.
type Machines struct {
	Family        lb.Family
	Configuration string
	Every         bool
	Lookup        func(node string) (nic.Machine, error)
}

// MachineTarget is a pool's desired machines, for the machine updater.
type MachineTarget struct {
	Target nic.Target
	// addresses has the machines for each wanted address that the pool lacks: more than one if several nodes claim the
	// address.
	addresses   [][]memberMachine
	waitReasons []string
	duplicates  []Unusable
}

// Unusable is a node of the pool with a machine that cannot join.
type Unusable struct {
	Node   string
	IP     netip.Addr
	Reason string
}

// IsInSync reports whether the pool has exactly its machines.
func (t *MachineTarget) IsInSync() bool {
	return len(t.addresses)+len(t.Target.ToRemove)+len(t.waitReasons) == 0
}

func (t *MachineTarget) removeUnusable(unusable []nic.WaitingMachine) (nodes []Unusable) {
	reason := make(map[string]string, len(unusable))
	for _, w := range unusable {
		reason[w.Machine.Key()] = w.Reason
	}
	t.addresses = slices.DeleteFunc(t.addresses, func(machines []memberMachine) bool {
		if slices.ContainsFunc(machines, func(m memberMachine) bool { return reason[m.Key()] == "" }) {
			return false
		}
		for _, m := range machines {
			nodes = append(nodes, Unusable{Node: m.node, IP: m.ip, Reason: reason[m.Key()]})
		}
		return true
	})
	return nodes
}

// Fingerprint is equal for equal targets, and never zero.
func (t *MachineTarget) Fingerprint() uint64 {
	keys := func(machines []nic.Machine) (keys []string) {
		for _, m := range machines {
			keys = append(keys, m.Key())
		}
		return keys
	}
	return hashText("%q %t %q %q", t.Target.Configuration, t.Target.AllNodes, keys(t.Target.Members), keys(t.Target.ToRemove))
}

// hashText never returns zero.
func hashText(format string, args ...any) uint64 {
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, format, args...) // hash.Hash never returns an error
	return max(sum.Sum64(), 1)
}

// PrepareMembers computes the machines that join and leave, and the admin states; write is true if these are to be
// written. Machines that are neither recorded nor nodes of this cluster stay: their scale set may have added them.
func (r *Result) PrepareMembers(observed lb.Pool, want Desired, adminState bool) (write bool, intent *Intent, err error) {
	present := findNodes(observed, want)
	want = want.limitRetained(present)
	recorded := want.Record
	r.Addresses = want.Addresses
	r.setRecord(recorded)
	if err := checkPoolKind(observed, want); err != nil {
		r.Outcome = Rejected
		return false, nil, err
	}
	managed := findManaged(lb.Pool{Addresses: present}, want, adminState)
	machines, unknown := findMachines(want)
	leaving := findRemoved(present, want, machines, unknown, managed)
	r.MachineTarget = newMachineTarget(observed.ID, want, present, leaving, machines, unknown)
	r.written, r.instances = nextRecord(present, want, machines, unknown, managed)
	r.sharedAddresses, r.unresolvedIPs, r.InterfaceHash = want.SharedAddresses, want.UnresolvedIPs, hashInterfaces(observed)
	if adminState {
		states := want
		states.Addresses = slices.Concat(want.Addresses, filterManagedDown(leaving, managed))
		r.Change = computeStates(observed, states, slices.Collect(maps.Keys(managed.down)))
		r.down = sortIPs(r.Change.managedDown)
	} else { // resets nothing; Down stays recorded
		r.Change = Change{Next: observed}
		r.down = filterDown(recorded.Down, want.Addresses, lb.Pool{Addresses: present})
	}
	r.Change.statesOnly, r.Change.isCompared = true, true
	r.Change.addedIPs, r.Change.removedIPs = missingIPs(want.Addresses, present), sortedIPs(leaving)
	r.Change.ForeignCount = len(observed.Addresses) - len(present)
	r.ChangesMembers = len(r.MachineTarget.addresses)+len(r.MachineTarget.Target.ToRemove) > 0
	write, err = r.needsWrite(observed)
	if !r.MachineTarget.IsInSync() && err != nil { // a machine is joining or leaving
		write, err = false, nil
	}
	if err != nil || !write && r.MachineTarget.IsInSync() {
		return false, nil, err
	}
	if intent = r.newIntent(recorded, managed); intent != nil {
		intent.Add, intent.Remove = len(r.MachineTarget.addresses), len(r.MachineTarget.Target.ToRemove)
	}
	return write, intent, nil
}

func findNodes(observed lb.Pool, want Desired) (present []lb.Address) {
	for _, a := range observed.Addresses {
		if ip, ok := want.nodeAddress(a); ok {
			a.IP, a.Machine = ip, lb.MachineKey(a.Machine)
			present = append(present, a)
		}
	}
	return present
}

func hashInterfaces(observed lb.Pool) uint64 {
	names := make([]string, len(observed.Addresses))
	for i, a := range observed.Addresses {
		names[i] = strings.ToLower(a.Interface)
	}
	slices.Sort(names)
	return hashText("%q", names)
}

func (d Desired) nodeAddress(a lb.Address) (netip.Addr, bool) {
	if ip, ok := d.AddressOf(a.Machine); ok {
		return ip, true
	}
	if ip, ok := d.Record.Instances[lb.MachineKey(a.Machine)]; ok {
		return ip, true
	}
	return a.IP, a.Machine != "" && slices.Contains(d.Record.Written, a.IP)
}

type memberMachine struct {
	node string
	ip   netip.Addr
	nic.Machine
	err error
}

// findMachines returns the wanted machines, and the addresses of nodes with an unknown machine: members with these
// addresses stay.
func findMachines(want Desired) (machines []memberMachine, unknown map[netip.Addr]bool) {
	machines, unknown = make([]memberMachine, 0, len(want.Addresses)+len(want.SharedAddresses)), map[netip.Addr]bool{}
	for _, ip := range want.UnresolvedIPs {
		unknown[ip] = true
	}
	for _, a := range slices.Concat(want.Addresses, want.SharedAddresses) {
		m, err := want.Machines.Lookup(a.Name)
		if machines = append(machines, memberMachine{a.Name, a.IP, m, err}); err != nil {
			unknown[a.IP] = true
		}
	}
	return machines, unknown
}

// findDuplicates returns the nodes with the machine of another wanted node, unless a further machine has their address.
// The machine is the member of the node that AddressOf returns.
func findDuplicates(want Desired, machines []memberMachine) (duplicates []Unusable) {
	members := make(map[string]memberMachine, len(machines))
	for _, m := range machines {
		if m.err != nil {
			continue
		}
		member, found := members[m.Key()]
		if !found || m.ip == member.ip {
			members[m.Key()] = m
			continue
		}
		if ip, _ := want.AddressOf(m.Key()); ip == m.ip {
			members[m.Key()], m, member = m, member, m
		}
		duplicates = append(duplicates, Unusable{m.node, m.ip, "its spec.providerID is that of node " + member.node + ": delete the Node that has no machine"})
	}
	if len(duplicates) == 0 {
		return nil
	}
	ips := map[netip.Addr]bool{}
	for _, m := range members {
		ips[m.ip] = true
	}
	return slices.DeleteFunc(duplicates, func(u Unusable) bool { return ips[u.IP] })
}

func findRemoved(present []lb.Address, want Desired, machines []memberMachine, unknown map[netip.Addr]bool, managed managedSets) (leaving []lb.Address) {
	wanted := make(map[string]bool, len(machines))
	for _, m := range machines {
		if m.err == nil {
			wanted[m.Key()] = true
		}
	}
	for _, a := range present {
		if _, isManaged := managed.written[a.IP]; !wanted[a.Machine] && !unknown[a.IP] && (isManaged || want.IsOwnAddress(a.IP)) {
			leaving = append(leaving, a)
		}
	}
	return leaving
}

func nextRecord(present []lb.Address, want Desired, machines []memberMachine, unknown map[netip.Addr]bool, managed managedSets) (written []netip.Addr, instances map[string]netip.Addr) {
	written = sortedIPs(want.Addresses)
	keep := func(machine string, ip netip.Addr) {
		if instances == nil {
			instances = map[string]netip.Addr{}
		}
		instances[machine] = ip
	}
	for _, m := range machines {
		if m.err == nil && m.IsUniform() {
			keep(m.Key(), m.ip)
		}
	}
	for _, a := range present {
		if _, isManaged := managed.written[a.IP]; isManaged && unknown[a.IP] {
			written = append(written, a.IP)
			if _, ok := want.Record.Instances[a.Machine]; ok {
				keep(a.Machine, a.IP)
			}
		}
	}
	return sortIPs(written), instances
}

// filterManagedDown returns leaving interfaces that Weir set Down: they stay Down until they have left.
func filterManagedDown(leaving []lb.Address, managed managedSets) []lb.Address {
	return slices.DeleteFunc(slices.Clone(leaving), func(a lb.Address) bool {
		_, byWeir := managed.down[a.IP]
		return !byWeir || !isDown(a)
	})
}

func newMachineTarget(id lb.PoolID, want Desired, present, leaving []lb.Address, machines []memberMachine, unknown map[netip.Addr]bool) *MachineTarget {
	by := want.Machines
	h := &MachineTarget{Target: nic.Target{Pool: nic.Pool{ID: id, Family: by.Family, Configuration: by.Configuration, AllNodes: by.Every}}}
	inPool, shown := make(map[string]bool, len(present)), make(map[netip.Addr]bool, len(present))
	for _, a := range present {
		inPool[a.Machine], shown[a.IP] = true, shown[a.IP] || unknown[a.IP]
	}
	for _, m := range machines {
		shown[m.ip] = shown[m.ip] || m.err == nil && inPool[m.Key()]
	}
	h.duplicates = findDuplicates(want, machines)
	at := map[netip.Addr]int{} // index in addresses
	for _, m := range machines {
		if m.err == nil {
			h.Target.Members = append(h.Target.Members, m.Machine)
		}
		if shown[m.ip] || slices.ContainsFunc(h.duplicates, func(u Unusable) bool { return u.IP == m.ip }) {
			continue
		}
		if m.err != nil {
			h.waitReasons = append(h.waitReasons, fmt.Sprintf("node %s: %s", m.node, m.err))
			continue
		}
		i, known := at[m.ip]
		if !known {
			i, at[m.ip] = len(h.addresses), len(h.addresses)
			h.addresses = append(h.addresses, nil)
		}
		h.addresses[i] = append(h.addresses[i], m)
		h.Target.Missing = append(h.Target.Missing, m.Machine)
	}
	for _, a := range present {
		if m, err := nic.ParseMachine("azure://" + a.Machine); err == nil && unknown[a.IP] {
			h.Target.Members = append(h.Target.Members, m)
		}
	}
	for _, a := range leaving {
		m, err := nic.ParseMachine("azure://" + a.Machine)
		if err != nil {
			h.waitReasons = append(h.waitReasons, fmt.Sprintf("%s, which leaves: %s", a.IP, err))
			continue
		}
		h.Target.ToRemove = append(h.Target.ToRemove, m)
	}
	for _, machines := range []*[]nic.Machine{&h.Target.Members, &h.Target.ToRemove, &h.Target.Missing} {
		slices.SortFunc(*machines, func(a, b nic.Machine) int { return cmp.Compare(a.Key(), b.Key()) })
		*machines = slices.CompactFunc(*machines, func(a, b nic.Machine) bool { return a.Key() == b.Key() })
	}
	return h
}

func checkPoolKind(observed lb.Pool, want Desired) error {
	switch {
	case !observed.NIC && len(observed.Addresses) > 0:
		return newRejection(CodeAddressPool, "address_pool",
			"pool %s holds IP addresses, and its members are to be network interfaces: Azure does not mix them", observed.ID.Name)
	case observed.Outbound && !want.IsExclusive:
		return newRejection(CodeOutboundPool, "outbound_pool",
			"pool %s has outbound rules: a machine that leaves it loses its outbound connectivity", observed.ID.Name)
	}
	return nil
}

// CodeNICPool means that a pool holds network interfaces instead of addresses.
const CodeNICPool = "NICPool"

func errInterfaces(pool lb.PoolID) *armerror.Fault {
	return newRejection(CodeNICPool, "nic_pool", "pool %s holds network interfaces, and its members are to be IP addresses, so nodes neither join nor leave it: name another, or, if it is the cluster's, write loadBalancerBackendPoolConfigurationType into azure.json", pool.Name)
}

func newRejection(code, reason, format string, args ...any) *armerror.Fault {
	return &armerror.Fault{Class: armerror.Terminal, Code: code, Reason: reason, Err: fmt.Errorf(format, args...)}
}

func isDown(a lb.Address) bool { return a.AdminState == lb.Down }

// computeStates keeps a recorded Down while an unidentified interface is Down: its node may be deleted, or not report
// its machine yet.
func computeStates(observed lb.Pool, want Desired, down []netip.Addr) Change {
	states, byWeir, found := statesByIP(want.Addresses), newSet(down), map[netip.Addr]bool{}
	c, unidentified := Change{Next: observed}, false
	c.Next.Addresses = slices.Clone(observed.Addresses)
	for i := range c.Next.Addresses {
		a := &c.Next.Addresses[i]
		ip, ok := want.nodeAddress(*a)
		if !ok {
			unidentified = unidentified || isDown(*a)
			continue
		}
		a.IP, found[ip] = ip, true
		a.AdminState = c.setAdminState(*a, states[ip], byWeir)
	}
	for _, ip := range down {
		if unidentified && !found[ip] {
			c.managedDown = append(c.managedDown, ip)
			continue
		}
		c.hasExtraRecords = c.hasExtraRecords || c.IsEmpty() && states[ip] != lb.Down // a write may still be in flight
	}
	return c
}

func copyAddresses(shown, written lb.Pool) lb.Pool {
	if !written.NIC {
		return shown
	}
	ips := map[string]netip.Addr{}
	for _, a := range written.Addresses {
		ips[strings.ToLower(a.Interface)] = a.IP
	}
	shown.Addresses = slices.Clone(shown.Addresses)
	for i, a := range shown.Addresses {
		shown.Addresses[i].IP = ips[strings.ToLower(a.Interface)]
	}
	return shown
}

// MemberProgress is the state of members that the machine updater writes.
type MemberProgress struct {
	Outcome Outcome
	Fault   *armerror.Fault
	// WaitFor is how long to wait for a completion signal; zero if there will be none.
	WaitFor time.Duration
}

// maxMachineWait bounds the wait in case a signal is lost.
const maxMachineWait = time.Minute

const (
	maxListedMachines = 5
	maxMessageBytes   = 160
	maxFailureBytes   = 900
)

// RecordMachines processes machines' states. A pool that has to be empty waits for all: pending joins, or scale sets
// that reference it, would prevent its deletion.
func (r *Result) RecordMachines(state nic.State) {
	h := r.MachineTarget
	r.Unusable = append(h.removeUnusable(state.Unavailable), h.duplicates...)
	if h.IsInSync() && (len(h.Target.Members) > 0 || len(state.Working)+len(state.Waiting)+len(state.Failed) == 0 && !state.ScaleSetsUnknown) {
		return
	}
	if len(state.Failed) > 0 {
		r.MemberProgress = h.summarizeFailures(state.Failed)
		return
	}
	waits := slices.Clone(h.waitReasons)
	for _, w := range state.Waiting {
		waits = append(waits, prefixMachine(w.Machine, w.Reason))
	}
	if state.ScaleSetsUnknown && len(state.Working)+len(waits) == 0 {
		waits = append(waits, "scale sets are being listed: one may name the pool")
	}
	r.MemberProgress = &MemberProgress{Outcome: Postponed, Fault: newNotReadyFault(h.progressMessage(state.Working, waits))}
	if len(state.Working)+len(waits) > 0 {
		r.MemberProgress.WaitFor = maxMachineWait
	}
}

func (t *MachineTarget) progressMessage(working []nic.Machine, waits []string) string {
	moving, n := map[string]bool{}, 0
	for _, m := range t.Target.ToRemove {
		moving[m.Key()] = true
	}
	for _, m := range slices.Concat(t.addresses...) {
		moving[m.Key()] = true
	}
	for _, m := range working {
		if moving[m.Key()] {
			n++
		}
	}
	total := max(len(t.Target.Members)+len(t.Target.ToRemove), n)
	var text []string
	if n > 0 {
		verb := "are"
		if n == 1 {
			verb = "is"
		}
		text = append(text, fmt.Sprintf("%d of %s %s being written", n, humanize.FormatCount(total, "machine"), verb))
	}
	if len(waits) > 0 {
		verb := "wait: "
		if len(waits) == 1 {
			verb = "waits: "
		}
		text = append(text, fmt.Sprintf("%d %s%s", len(waits), verb, joinMessages(waits, maxListedMachines)))
	}
	if len(text) > 0 {
		return strings.Join(text, "; ")
	}
	if n := len(t.addresses); n > 0 {
		text = append(text, humanize.FormatCount(n, "machine")+" joined")
	}
	if n := len(t.Target.ToRemove); n > 0 {
		text = append(text, humanize.FormatCount(n, "machine")+" left")
	}
	if len(text) > 0 {
		return "the pool does not show yet that " + strings.Join(text, ", ")
	}
	return "which machines and scale sets name the pool is being read"
}

// summarizeFailures is retriable if any is. Deleted machines and shutdowns prove nothing about the pool, and a
// machine's Retry-After does not delay others.
func (t *MachineTarget) summarizeFailures(failures []nic.Failure) *MemberProgress {
	failures = slices.Clone(failures)
	rank := func(f nic.Failure) int {
		return slices.Index([]armerror.Class{armerror.Terminal, armerror.Retriable, armerror.Stale, armerror.Shutdown}, armerror.FromError(f.Err).Class)
	}
	slices.SortStableFunc(failures, func(a, b nic.Failure) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Machine.Key(), b.Machine.Key()))
	})
	first := max(0, slices.IndexFunc(failures, func(f nic.Failure) bool { return armerror.FromError(f.Err).Class == armerror.Retriable }))
	worst := *armerror.FromError(failures[first].Err)
	messages, codes := make([]string, len(failures)), make([]string, len(failures))
	for i, f := range failures {
		messages[i], codes[i] = prefixMachine(f.Machine, f.Err.Error()), armerror.FromError(f.Err).Code
	}
	prefix := fmt.Sprintf("%d of %s failed: ", len(failures), humanize.FormatCount(max(len(t.Target.Members)+len(t.Target.ToRemove), len(failures)), "machine"))
	worst.Err = errors.New(formatFailures(prefix, messages, codes))
	worst.RetryAt, worst.MayBeApplied, worst.OperationFailed = time.Time{}, false, false
	switch worst.Class {
	case armerror.Shutdown:
		return &MemberProgress{Outcome: Postponed, Fault: newNotReadyFault(worst.Err.Error())}
	case armerror.Stale:
		worst.Class = armerror.Retriable
	}
	return &MemberProgress{Outcome: Outcome(worst.Class), Fault: &worst}
}

func newNotReadyFault(text string) *armerror.Fault {
	return &armerror.Fault{Class: armerror.Retriable, Code: "NotReady", Reason: "not_ready", Err: fmt.Errorf("%w: %s", ErrNotReady, text)}
}

func prefixMachine(m nic.Machine, text string) string {
	if name := m.String(); !strings.HasPrefix(text, name) {
		text = name + ": " + text
	}
	return text
}

// formatFailures lists fewer failures rather than losing what to do against them.
func formatFailures(prefix string, messages, codes []string) string {
	for limit := maxListedMachines; ; limit-- {
		text := armerror.AppendResolution(prefix+joinMessages(messages, limit), codes)
		if limit == 1 || len(text) <= maxFailureBytes {
			return text
		}
	}
}

func joinMessages(messages []string, limit int) string {
	short := make([]string, len(messages))
	for i, text := range messages {
		short[i] = humanize.FormatMessage(text, maxMessageBytes)
	}
	return humanize.FormatList(short, limit)
}
