// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// What Weir manages: on takeover the nodes that a pool holds, and Down only where the node leaves and no other client
// writes the pool; later what is on record.
func TestManagedMembers(t *testing.T) {
	observed := lb.Pool{Addresses: addresses("n1=10.0.0.1/Down n2=10.0.0.2/Down n3=10.0.0.3 vm=10.9.9.9/Down")}
	for about, tt := range map[string]struct {
		recorded, exclusive, states bool
		written, down               string
	}{
		"taken over":                          {states: true, written: "[10.0.0.1 10.0.0.2 10.0.0.3]", down: "[]"},
		"taken over, and made by Weir":        {states: true, exclusive: true, written: "[10.0.0.1 10.0.0.2 10.0.0.3]", down: "[10.0.0.1]"},
		"the same without admin states":       {exclusive: true, written: "[10.0.0.1 10.0.0.2 10.0.0.3]", down: "none"},
		"recorded":                            {recorded: true, states: true, exclusive: true, written: "[10.0.0.2]", down: "[10.0.0.3]"},
		"recorded, and no states are managed": {recorded: true, written: "[10.0.0.2]", down: "none"},
	} {
		want := Desired{
			Addresses: addresses("n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3/Down"), IsExclusive: tt.exclusive,
			IsOwnAddress: func(ip netip.Addr) bool { return ip.As4()[1] == 0 },
		}
		if tt.recorded {
			want.Record = Record{Adopted: true, Written: nodeIPs(2), Down: nodeIPs(3)}
		}
		managed := findManaged(observed, want, tt.states)
		down := "none"
		if managed.down != nil {
			down = fmt.Sprint(sortedSet(managed.down))
		}
		if written := fmt.Sprint(sortedSet(managed.written)); written != tt.written || down != tt.down {
			t.Errorf("%s: %s, down %s", about, written, down)
		}
	}
}

func sortedSet(of map[netip.Addr]struct{}) []netip.Addr {
	ips := []netip.Addr{}
	for ip := range of {
		ips = append(ips, ip)
	}
	return sortIPs(ips)
}

// Without management of admin states, a recorded Down remains while the pool shows it.
func TestRecordedDownWithoutAdminStates(t *testing.T) {
	observed := lb.Pool{Etag: "1", Addresses: addresses("n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3/Down")}
	want := Desired{Addresses: addresses("n1=10.0.0.1 n2=10.0.0.2"), Record: Record{Adopted: true, Written: nodeIPs(1, 2), Down: nodeIPs(1, 2, 3)}}
	r := NewResult(Memory{}, false)
	write, intent, err := r.PrepareAddresses(observed, want, false)
	if fmt.Sprint(r.down) != "[10.0.0.1]" || !write || intent != nil || err != nil || r.Outcome != Unchanged || r.ChangesMembers {
		t.Errorf("%v, write %t, %v, %v, %s", r.down, write, intent, err, r.Outcome) // the record has more, so a write may be on its way
	}
	want.Record.Down = nodeIPs(1)
	r = NewResult(Memory{}, false)
	if write, _, err = r.PrepareAddresses(observed, want, false); write || err != nil || fmt.Sprint(r.down) != "[10.0.0.1]" {
		t.Errorf("%v, write %t, %v", r.down, write, err)
	}
}

// What another client reverts, seen by an attempt that did not succeed, is not counted.
func TestFailedAttemptReportsNoConflict(t *testing.T) {
	state := conflictState{managed: nodeIPs(1), reverted: nodeIPs(1), revertCount: 2}
	failed := Result{Outcome: Retriable, Change: Change{addedIPs: nodeIPs(1)}}
	if got := state.recordAttempt(failed, nil, true); got.revertCount != 2 || !slices.Equal(got.ConflictingIPs(), nodeIPs(1)) || !slices.Equal(got.managed, nodeIPs(1)) {
		t.Errorf("%+v", got)
	}
	for _, gone := range []Outcome{Stale, Rejected} {
		if got := state.recordAttempt(Result{Outcome: gone}, nil, false); got.revertCount != 0 || got.managed != nil {
			t.Errorf("%s: %+v", gone, got)
		}
	}
}

// memberWorld returns a pool of network interfaces with these machines, and what a cluster with these nodes wants.
func memberWorld(present, wanted string) (lb.Pool, Desired) {
	pool := lb.Pool{NIC: true, Etag: "1"}
	for _, a := range addresses(present) {
		pool.Addresses = append(pool.Addresses, lb.Address{Name: a.Name, Interface: "nic-" + a.Name, AdminState: a.AdminState, Machine: machineOf(a.Name).Key()})
	}
	pool.NIC = len(pool.Addresses) > 0
	return pool, Desired{
		Addresses:    addresses(wanted),
		IsOwnAddress: func(netip.Addr) bool { return true },
		AddressOf: func(machine string) (netip.Addr, bool) {
			var i int
			_, err := fmt.Sscanf(path.Base(machine), "n%d", &i)
			return nodeIP(i), err == nil
		},
		Machines: &Machines{Family: lb.IPv4, Lookup: func(node string) (nic.Machine, error) {
			if strings.HasPrefix(node, "unknown") {
				return nic.Machine{}, errors.New("it has no machine yet")
			}
			return machineOf(node), nil
		}},
	}
}

// The target of a pool of network interfaces.
func TestTargetsOfPools(t *testing.T) {
	const both = "n1=10.0.0.1 n2=10.0.0.2"
	for about, tt := range map[string]struct {
		there, wanted                  string
		down                           []netip.Addr
		members, missing, leaving      string
		waits                          int
		changes, write, inSync, intent bool
	}{
		"in sync":                {there: both, wanted: both, members: "n1 n2", inSync: true},
		"one joins":              {there: "n2=10.0.0.2", wanted: both, members: "n1 n2", missing: "n1", changes: true, intent: true},
		"one leaves":             {there: both, wanted: "n2=10.0.0.2", members: "n2", leaving: "n1", changes: true},
		"they are sorted":        {wanted: "n2=10.0.0.2 n1=10.0.0.1", members: "n1 n2", missing: "n1 n2", changes: true, intent: true},
		"one has no machine yet": {there: "n2=10.0.0.2", wanted: "n2=10.0.0.2 unknown=10.0.0.7", members: "n2", waits: 1, intent: true},
		"one has to be Down":     {there: both, wanted: "n1=10.0.0.1/Down n2=10.0.0.2", members: "n1 n2", write: true, inSync: true, intent: true},
		"one that Weir set Down stays so while it leaves": {there: "n1=10.0.0.1/Down n2=10.0.0.2", wanted: "n2=10.0.0.2", down: nodeIPs(1), members: "n2", leaving: "n1", changes: true},
	} {
		pool, want := memberWorld(tt.there, tt.wanted)
		want.Record = Record{Adopted: true, Written: nodeIPs(2), Down: tt.down}
		if tt.inSync && !tt.write {
			want.Record.Written = nodeIPs(1, 2)
		}
		r := NewResult(Memory{}, false)
		write, intent, err := r.PrepareMembers(pool, want, true)
		target := r.MachineTarget
		names := func(machines []nic.Machine) string {
			text := make([]string, len(machines))
			for i, m := range machines {
				text[i] = path.Base(m.Key())
			}
			return strings.Join(text, " ")
		}
		if err != nil || write != tt.write || (intent != nil) != tt.intent || target.IsInSync() != tt.inSync || r.ChangesMembers != tt.changes {
			t.Errorf("%s: write %t, intent %v, in sync %t, changes %t, %v", about, write, intent, target.IsInSync(), r.ChangesMembers, err)
		}
		if names(target.Target.Members) != tt.members || names(target.Target.Missing) != tt.missing || names(target.Target.ToRemove) != tt.leaving || len(target.waitReasons) != tt.waits {
			t.Errorf("%s: members %s, missing %s, leaving %s, waits %v", about, names(target.Target.Members), names(target.Target.Missing), names(target.Target.ToRemove), target.waitReasons)
		}
	}
}

// What identifies a membership, its machines and its interfaces.
func TestMembershipKeys(t *testing.T) {
	prepare := func(present, wanted string, change func(*Desired)) Result {
		pool, want := memberWorld(present, wanted)
		want.Record = Record{Adopted: true, Written: nodeIPs(1, 2)}
		if change != nil {
			change(&want)
		}
		r := NewResult(Memory{}, false)
		if _, _, err := r.PrepareMembers(pool, want, true); err != nil {
			t.Fatal(err)
		}
		r.MemberProgress = nil
		return r
	}
	const both = "n1=10.0.0.1 n2=10.0.0.2"
	result := prepare(both, both, nil)
	if result.InterfaceHash == 0 || result.InterfaceHash != prepare(both, "n1=10.0.0.1", nil).InterfaceHash || result.InterfaceHash == prepare("n1=10.0.0.1", both, nil).InterfaceHash {
		t.Error("interfaces are not identified by what the pool shows")
	}
	if result.MachineTarget.Fingerprint() != prepare(both, both, nil).MachineTarget.Fingerprint() || result.MachineTarget.Fingerprint() == prepare(both, "n1=10.0.0.1", nil).MachineTarget.Fingerprint() {
		t.Error("targets are not identified by their machines")
	}
	known := result.SyncedFingerprint()
	if known == nil {
		t.Fatal("a pool in sync is not known to be")
	}
	for about, change := range map[string]func(*Desired){
		"another node has one of its addresses": func(d *Desired) { d.SharedAddresses = addresses("n2=10.0.0.1") },
		"the node of an address is unknown":     func(d *Desired) { d.UnresolvedIPs = nodeIPs(1) },
	} {
		if got := prepare(both, both, change).SyncedFingerprint(); got == nil || *got == *known {
			t.Errorf("%s: the same membership", about)
		}
	}
	result.HasPending = true
	if result.SyncedFingerprint() != nil {
		t.Error("known while a lost write may land")
	}
}

// What machines that are written, wait or failed mean for their pool.
func TestProgressOfMachines(t *testing.T) {
	machine := machineOf("n1")
	waiting, failed := []nic.WaitingMachine{{Machine: machine, Reason: "its scale set is updating"}}, []nic.Failure{{Machine: machine, Err: armerror.Classify(armerror.Failure{Status: 400}, errors.New("refused"))}}
	for about, tt := range map[string]struct {
		target  MachineTarget
		state   nic.State
		outcome Outcome
		signal  bool
		message string
	}{
		"in sync":                              {target: MachineTarget{Target: nic.Target{Pool: nic.Pool{Members: []nic.Machine{machine}}}}, state: nic.State{Working: []nic.Machine{machine}, Waiting: waiting, Failed: failed, ScaleSetsUnknown: true}},
		"empty":                                {},
		"empty, and one may still join":        {state: nic.State{Working: []nic.Machine{machine}, Waiting: waiting}, outcome: Postponed, signal: true, message: "1 waits: "},
		"empty, and one waits":                 {state: nic.State{Waiting: waiting}, outcome: Postponed, signal: true, message: "1 waits: virtual machine n1: its scale set is updating"},
		"empty, and scale sets are unknown":    {state: nic.State{ScaleSetsUnknown: true}, outcome: Postponed, signal: true, message: "scale sets are being listed"},
		"one leaves":                           {target: MachineTarget{Target: nic.Target{ToRemove: []nic.Machine{machine}}}, outcome: Postponed, message: "the pool does not show yet that 1 machine left"},
		"one joins":                            {target: MachineTarget{addresses: [][]memberMachine{{{Machine: machine}}}}, outcome: Postponed, message: "the pool does not show yet that 1 machine joined"},
		"one joins and one leaves":             {target: MachineTarget{addresses: [][]memberMachine{{{Machine: machine}}}, Target: nic.Target{ToRemove: []nic.Machine{machineOf("n2")}}}, outcome: Postponed, message: "1 machine joined, 1 machine left"},
		"one is being written":                 {target: MachineTarget{Target: nic.Target{ToRemove: []nic.Machine{machine}}}, state: nic.State{Working: []nic.Machine{machine}}, outcome: Postponed, signal: true, message: "1 of 1 machine is being written"},
		"a machine failed, and nothing helps":  {target: MachineTarget{Target: nic.Target{ToRemove: []nic.Machine{machine}}}, state: nic.State{Failed: failed}, outcome: Terminal, message: "1 of 1 machine failed: "},
		"one failed where nothing has to join": {state: nic.State{Failed: failed}, outcome: Terminal, message: "1 of 1 machine failed: "},
	} {
		r := Result{MachineTarget: &tt.target}
		r.RecordMachines(tt.state)
		p := r.MemberProgress
		switch {
		case tt.outcome == "" && p == nil:
		case p == nil || p.Outcome != tt.outcome || (p.WaitFor > 0) != tt.signal || !strings.Contains(p.Fault.Error(), tt.message):
			t.Errorf("%s: %+v", about, p)
		}
	}
}
