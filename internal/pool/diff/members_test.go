// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

const someMachines = 8

func nodeName(i int) string { return fmt.Sprintf("n%d", i) }

func nodeIP(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

func machineOf(node string) nic.Machine {
	m, err := nic.ParseMachine("azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/" + node)
	if err != nil {
		panic(err)
	}
	return m
}

// The interface of a deleted node leaves if its address is recorded. From a pool with outbound
// rules that Weir did not make, nothing leaves.
func TestLeavingInterfaces(t *testing.T) {
	pool := lb.Pool{NIC: true, Addresses: []lb.Address{
		{Interface: "nic-n1", IP: nodeIP(1), Machine: machineOf("n1").Key()}, {Interface: "nic-n2", IP: nodeIP(2), Machine: machineOf("n2").Key()},
	}}
	want := Desired{
		IsOwnAddress: func(netip.Addr) bool { return false }, AddressOf: func(string) (netip.Addr, bool) { return netip.Addr{}, false },
		Machines: &Machines{Family: lb.IPv4}, Record: Record{Adopted: true, Written: []netip.Addr{nodeIP(1)}},
	}
	r := NewResult(Memory{}, false)
	if _, _, err := r.PrepareMembers(pool, want, true); err != nil || len(r.MachineTarget.Target.ToRemove) != 1 || r.MachineTarget.Target.ToRemove[0].Key() != machineOf("n1").Key() {
		t.Errorf("%+v, %v", r.MachineTarget, err)
	}
	pool.Outbound = true
	for _, created := range []bool{false, true} {
		r, want.IsExclusive = NewResult(Memory{}, false), created
		if _, _, err := r.PrepareMembers(pool, want, true); (err == nil) != created || (r.Outcome == Rejected) == created {
			t.Errorf("made by Weir %t: %s %v", created, r.Outcome, err)
		}
	}
}

// For any pool and record: writing exactly what was handed over gets the pool in sync; machines
// without a node stay, as do nodes that are neither recorded nor of this cluster; changes are
// recorded before; and no address is ever written.
func TestLawOfMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(label string) map[int]bool {
			return rapid.MapOfN(rapid.IntRange(1, someMachines), rapid.Just(true), 0, someMachines).Draw(t, label)
		}
		present, wanted, recorded, down, nodes, draining := some("there"), some("wanted"), some("recorded"), some("down"), some("nodes"), some("draining")
		adminState := rapid.Bool().Draw(t, "admin states")
		want := Desired{
			IsOwnAddress: func(ip netip.Addr) bool { return nodes[int(ip.As4()[3])] },
			AddressOf: func(machine string) (netip.Addr, bool) {
				for i := 1; i <= someMachines; i++ {
					if path.Base(machine) == nodeName(i) {
						return nodeIP(i), true
					}
				}
				return netip.Addr{}, false
			},
			Machines: &Machines{Family: lb.IPv4, Lookup: func(node string) (nic.Machine, error) { return machineOf(node), nil }},
			Record:   Record{Adopted: rapid.Bool().Draw(t, "taken")},
		}
		pool := lb.Pool{Etag: "1"}
		add := func(name, state string) {
			pool.NIC = true
			pool.Addresses = append(pool.Addresses, lb.Address{Name: name, Interface: "nic-" + name, AdminState: state, Machine: machineOf(name).Key()})
		}
		for i := 1; i <= someMachines; i++ {
			state := map[bool]string{true: lb.Down}[down[i]]
			if present[i] {
				add(nodeName(i), state)
			}
			if wanted[i] {
				want.Addresses = append(want.Addresses, lb.Address{Name: nodeName(i), IP: nodeIP(i), AdminState: map[bool]string{true: lb.Down}[draining[i]]})
			}
			if recorded[i] {
				want.Record.Written = append(want.Record.Written, nodeIP(i))
				if down[i] && adminState {
					want.Record.Down = append(want.Record.Down, nodeIP(i))
				}
			}
		}
		if rapid.Bool().Draw(t, "gateway") {
			add("gateway", "")
		}
		r := NewResult(Memory{}, false)
		write, intent, err := r.PrepareMembers(pool, want, adminState)
		if err != nil {
			t.Fatal(err)
		}
		if write && !slices.EqualFunc(r.Change.Next.Addresses, pool.Addresses, func(a, b lb.Address) bool { return a.Interface == b.Interface }) {
			t.Fatal("a write changes members")
		}
		record := want.Record.Written
		if intent != nil {
			record = intent.Written
		}
		for _, m := range slices.Concat(r.MachineTarget.addresses...) {
			if ip, _ := want.AddressOf(m.Key()); !slices.Contains(record, ip) {
				t.Fatalf("%s joins and is not on record", m)
			}
		}
		next := pool
		if write {
			next = r.Change.Next
		}
		next.Addresses = slices.DeleteFunc(slices.Clone(next.Addresses), func(a lb.Address) bool {
			return slices.ContainsFunc(r.MachineTarget.Target.ToRemove, func(m nic.Machine) bool { return m.Key() == a.Machine })
		})
		for _, m := range slices.Concat(r.MachineTarget.addresses...) {
			next.Addresses = append(next.Addresses, lb.Address{Name: m.VM.Name, Interface: "nic-" + m.VM.Name, Machine: m.Key()})
		}
		next.NIC = len(next.Addresses) > 0
		holds := func(name string) bool {
			return slices.ContainsFunc(next.Addresses, func(a lb.Address) bool { return a.Name == name })
		}
		for i := 1; i <= someMachines; i++ {
			foreign := present[i] && !recorded[i] && !nodes[i]
			if got := holds(nodeName(i)); got != (wanted[i] || foreign) {
				t.Fatalf("%s: %v", nodeName(i), got)
			}
		}
		if slices.ContainsFunc(pool.Addresses, func(a lb.Address) bool { return a.Name == "gateway" }) != holds("gateway") {
			t.Fatal("what is no node's goes")
		}
		if intent != nil {
			want.Record = Record{Written: intent.Written, Down: intent.Down, Adopted: true}
		}
		second := NewResult(Memory{}, false)
		if write, _, err = second.PrepareMembers(next, want, adminState); err != nil || !second.MachineTarget.IsInSync() {
			t.Fatalf("not in sync: %v, %v", second.MachineTarget, err)
		}
		if write && !slices.ContainsFunc(second.Change.MarkedDown, func(ip netip.Addr) bool { return !present[int(ip.As4()[3])] }) && !second.Change.hasExtraRecords {
			t.Fatalf("admin states are written twice: %+v", second.Change)
		}
	})
}

// Messages about machines are bounded, and the worst failure decides.
func TestMachineMessages(t *testing.T) {
	many := make([]nic.Machine, 200)
	for i := range many {
		many[i] = machineOf(fmt.Sprintf("vm%03d", i))
	}
	var failed []nic.Failure
	var waits []nic.WaitingMachine
	long := strings.Repeat("x", 4000)
	for i, m := range many[:60] {
		f := armerror.Classify(armerror.Failure{Status: 409, RetryAt: time.Now()}, fmt.Errorf("%s", long))
		if i == 59 {
			f = armerror.Classify(armerror.Failure{Status: 404, TargetMissing: true}, fmt.Errorf("gone"))
		}
		failed = append(failed, nic.Failure{Machine: m, Err: f})
		waits = append(waits, nic.WaitingMachine{Machine: m, Reason: m.String() + " is " + long})
	}
	refused := nic.Failure{Machine: many[80], Err: armerror.Classify(armerror.Failure{Status: 403, Codes: []string{"AuthorizationFailed"}}, fmt.Errorf("no"))}
	stops := nic.Failure{Machine: many[81], Err: armerror.Classify(armerror.Failure{IsShutdown: true}, fmt.Errorf("stops"))}
	for _, tt := range []struct {
		about    string
		state    nic.State
		want     Outcome
		code     string
		wantText string
	}{
		{"one waits", nic.State{Waiting: waits[:1]}, Postponed, "NotReady", "waiting: 1 waits: virtual machine vm000 is xxx"},
		{"many wait", nic.State{Working: many[:3], Waiting: waits}, Postponed, "NotReady", "waiting: 3 of 200 machines are being written; 60 wait: virtual machine vm000"},
		{"all are done", nic.State{}, Postponed, "NotReady", "waiting: the pool does not show yet that 200 machines joined"},
		{"some failed", nic.State{Working: many[:3], Failed: failed}, Retriable, "Conflict", "60 of 200 machines failed: virtual machine vm000: xxx"},
		{"one was refused", nic.State{Failed: append(slices.Clone(failed), refused)}, Retriable, "Conflict", "61 of 200 machines failed: virtual machine vm080: no, virtual"},
		{"all were refused", nic.State{Failed: []nic.Failure{refused}}, Terminal, "AuthorizationFailed", "1 of 200 machines failed: virtual machine vm080: no"},
		{"one has gone", nic.State{Failed: failed[59:]}, Retriable, "Not Found", "1 of 200 machines failed: virtual machine vm059: gone"},
		{"the process ends", nic.State{Failed: []nic.Failure{stops}}, Postponed, "NotReady", "1 of 200 machines failed: virtual machine vm081: stops"},
	} {
		joins := make([][]memberMachine, len(many))
		for i, m := range many {
			joins[i] = []memberMachine{{node: nodeName(i), ip: nodeIP(i), Machine: m}}
		}
		r := Result{MachineTarget: &MachineTarget{Target: nic.Target{Pool: nic.Pool{Members: many}}, addresses: joins}}
		r.RecordMachines(tt.state)
		got := r.MemberProgress
		if got.Outcome != tt.want || got.Fault.Code != tt.code || !strings.Contains(got.Fault.Error(), tt.wantText) || len(got.Fault.Error()) > 1000 {
			t.Errorf("%s: %s %s %q", tt.about, got.Outcome, got.Fault.Code, got.Fault.Error())
		}
		if !got.Fault.RetryAt.IsZero() {
			t.Errorf("%s: one machine's patience is the pool's", tt.about)
		}
		if waits := len(tt.state.Working)+len(tt.state.Waiting) > 0 && tt.want == Postponed; waits != (got.WaitFor > 0) {
			t.Errorf("%s: left alone for %s", tt.about, got.WaitFor)
		}
	}
}
