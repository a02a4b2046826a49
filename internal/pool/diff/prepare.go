// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// PrepareAddresses computes the write of a pool of IP addresses. Record intent first, unless it is nil.
func (r *Result) PrepareAddresses(observed lb.Pool, want Desired, adminState bool) (write bool, intent *Intent, err error) {
	want = want.limitRetained(observed.Addresses)
	recorded := want.Record
	r.Addresses = want.Addresses
	r.setRecord(recorded)
	if r.Overlapping = want.findOverlap(observed); len(r.Overlapping) > 0 && !recorded.Adopted {
		r.Outcome = Rejected
		return false, nil, newRejection(CodeOverlappingNodes, "overlapping_nodes",
			"pool %s holds addresses of this cluster's nodes that another cluster has written: %v", observed.ID.Name, r.Overlapping)
	}
	managed := findManaged(observed, want, adminState)
	wanted := withoutOverlap(want.Addresses, r.Overlapping)
	todo := computeChange(observed, wanted, managed, want.ClusterMark)
	r.written, r.down = sortedIPs(wanted), sortIPs(todo.managedDown)
	if !adminState { // Down states are not reset, and stay recorded
		r.down = filterDown(recorded.Down, want.Addresses, observed)
		todo.hasExtraRecords = todo.hasExtraRecords || len(r.down) < len(recorded.Down)
	}
	r.Change, r.ChangesMembers = todo, len(todo.addedIPs)+len(todo.removedIPs) > 0
	if write, err = r.needsWrite(observed); !write || err != nil {
		return false, nil, err
	}
	return true, r.newIntent(recorded, managed), nil
}

// PrepareStates computes the admin states of a pool of network interfaces, read with their machines.
func (r *Result) PrepareStates(observed lb.Pool, want Desired) (write bool, intent *Intent, err error) {
	recorded := want.Record
	r.Change = computeStates(observed, want, recorded.Down)
	r.down = sortIPs(r.Change.managedDown)
	if write, err = r.needsWrite(observed); !write || err != nil {
		return false, nil, err
	}
	down := sortIPs(slices.Concat(recorded.Down, r.Change.MarkedDown))
	r.writtenRecord.Down = down
	if len(down) == len(recorded.Down) {
		return true, nil, nil
	}
	members := len(observed.Addresses)
	return true, &Intent{Written: recorded.Written, Down: down, Instances: recorded.Instances, Desired: members, Observed: members, Update: r.Change.updateCount, OnlyStates: true}, nil
}

// RecordRead rejects a pool of network interfaces unless states, their admin states, are managed.
func (r *Result) RecordRead(pool lb.Pool, states bool) error {
	r.Observed = len(pool.Addresses)
	switch {
	case pool.NIC && !states:
		r.Outcome = Rejected
		return errInterfaces(pool.ID)
	case pool.NIC:
		r.HoldsInterfaces, r.Outcome = true, Unchanged
	}
	return nil
}

// HasRemovedNodes reports whether nodes leave or have left. Only then are machines read.
func (r *Result) HasRemovedNodes(want Desired) bool {
	r.setRecord(want.Record)
	r.Addresses = want.Addresses
	return len(want.Record.Down) > 0 || slices.ContainsFunc(want.Addresses, isDown)
}

func (r *Result) needsWrite(observed lb.Pool) (bool, error) {
	if r.Change.IsEmpty() {
		r.Outcome = Unchanged
		return r.needsRewrite(observed, r.Change.hasExtraRecords)
	}
	r.Outcome, r.mayHavePending = Written, r.ignoresEtag && r.pendingEtag != ""
	return true, nil
}

// newIntent always records a takeover: which addresses are managed may be unknown once a node was deleted.
func (r *Result) newIntent(recorded Record, managed managedSets) *Intent {
	before := len(managed.written)
	for _, a := range withoutOverlap(r.Addresses, r.Overlapping) {
		managed.written[a.IP] = struct{}{}
	}
	instances := maps.Clone(recorded.Instances)
	for machine, ip := range r.instances {
		if instances == nil {
			instances = map[string]netip.Addr{}
		}
		instances[machine] = ip
	}
	down := sortIPs(slices.AppendSeq(slices.Concat(recorded.Down, r.Change.MarkedDown), maps.Keys(managed.down)))
	r.writtenRecord = Record{Written: slices.SortedFunc(maps.Keys(managed.written), netip.Addr.Compare), Down: down, Instances: instances}
	if recorded.Adopted && len(managed.written) == before && len(down) == len(recorded.Down) && maps.Equal(instances, recorded.Instances) {
		return nil
	}
	return &Intent{
		Written: r.writtenRecord.Written, Down: down, Instances: instances,
		Desired: len(r.Addresses), Observed: r.Observed, Add: len(r.Change.addedIPs), Remove: len(r.Change.removedIPs), Update: r.Change.updateCount,
	}
}

// DryRun returns the pool that an attempt would write, or observed.
func DryRun(observed lb.Pool, want Desired, adminState bool) (lb.Pool, error) {
	switch {
	case want.Machines != nil:
		return observed, fmt.Errorf("pool %s: its members are network interfaces, and which of these join or leave is not rehearsed", observed.ID.Name)
	case observed.NIC:
		return observed, errInterfaces(observed.ID)
	}
	r := NewResult(Memory{}, false)
	if _, _, err := r.PrepareAddresses(observed, want, adminState); err != nil && !errors.Is(err, ErrNotReady) {
		return observed, err
	}
	return r.Change.Next, nil
}

// DryRunMembers returns a pool of network interfaces before and after its machines join and leave, with nodes' names
// and addresses. observed must have the machine of each interface.
func DryRunMembers(observed lb.Pool, want Desired) (before, next lb.Pool, err error) {
	if err := checkPoolKind(observed, want); err != nil {
		return observed, observed, err
	}
	want = want.limitRetained(findNodes(observed, want))
	names := map[netip.Addr]string{}
	for _, a := range want.Addresses {
		names[a.IP] = a.Name
	}
	before, next = observed, observed
	before.Addresses, next.Addresses = nil, nil
	present := map[netip.Addr]bool{}
	for _, a := range observed.Addresses {
		ip, ofNode := want.nodeAddress(a)
		if ofNode {
			a.IP, a.Name, present[ip] = ip, cmp.Or(names[ip], a.Name), true
		}
		before.Addresses = append(before.Addresses, a)
		managed := ofNode && (slices.Contains(want.Record.Written, ip) || want.IsOwnAddress(ip))
		if _, wanted := names[ip]; wanted || !managed {
			next.Addresses = append(next.Addresses, a)
		}
	}
	for _, a := range want.Addresses {
		if !present[a.IP] {
			next.Addresses = append(next.Addresses, lb.Address{Name: a.Name, IP: a.IP})
		}
	}
	next.NIC = len(next.Addresses) > 0
	return before, next, nil
}
