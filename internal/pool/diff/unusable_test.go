// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"errors"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// instanceOf returns a node's instance of a uniform scale set; Azure does not report its address.
func instanceOf(node string) nic.Machine {
	m, err := nic.ParseMachine("azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/blue/virtualMachines/" + strings.TrimPrefix(node, "n"))
	if err != nil {
		panic(err)
	}
	return m
}

// uniform is the desired state of a pool of instances with or without nodes.
func uniform(wanted, nodes string) Desired {
	want := Desired{
		IsOwnAddress: func(ip netip.Addr) bool { return slices.Contains(strings.Fields(nodes), nodeName(int(ip.As4()[3]))) },
		AddressOf: func(machine string) (netip.Addr, bool) {
			i, _ := strconv.Atoi(path.Base(machine))
			return nodeIP(i), slices.Contains(strings.Fields(nodes), nodeName(i))
		},
		Machines: &Machines{Family: lb.IPv4, Every: true, Lookup: func(node string) (nic.Machine, error) { return instanceOf(node), nil }},
		Record:   Record{Adopted: true},
	}
	for name := range strings.FieldsSeq(wanted) {
		i, _ := strconv.Atoi(name[1:])
		want.Addresses = append(want.Addresses, lb.Address{Name: name, IP: nodeIP(i), Machine: instanceOf(name).Key()})
	}
	return want
}

func poolOfInstances(names string) lb.Pool {
	pool := lb.Pool{NIC: true, Etag: "1"}
	for name := range strings.FieldsSeq(names) {
		pool.Addresses = append(pool.Addresses, lb.Address{Name: name, Interface: "nic-" + name, Machine: instanceOf(name).Key()})
	}
	return pool
}

func keysOf(machines []nic.Machine) string {
	names := make([]string, len(machines))
	for i, m := range machines {
		names[i] = "n" + m.Instance
	}
	return strings.Join(names, " ")
}

// An instance whose node was deleted leaves by the record, because Azure does not report its
// address. Instances that never were nodes remain, as does one with a node that has returned
// without reporting its machine.
func TestInstancesWhoseNodesAreGone(t *testing.T) {
	for _, tt := range []struct {
		about           string
		pool            string
		wanted, nodes   string
		recorded        string
		awaited         []netip.Addr
		leaves, remains string
	}{
		{"all are there", "n1 n2 n9", "n1 n2", "n1 n2", "n1 n2", nil, "", "n1 n2"},
		{"a node is deleted", "n1 n2 n9", "n1", "n1", "n1 n2", nil, "n2", "n1"},
		{"all are deleted", "n1 n2 n9", "", "", "n1 n2", nil, "n1 n2", ""},
		{"a node is excluded", "n1 n2 n9", "n1", "n1 n2", "n1 n2", nil, "n2", "n1"},
		{"a node is made again", "n1 n2 n9", "n1", "n1", "n1 n2", []netip.Addr{nodeIP(2)}, "", "n1 n2"},
		{"it was never recorded", "n1 n2 n9", "n1", "n1", "n1", nil, "", "n1"},
	} {
		want := uniform(tt.wanted, tt.nodes)
		want.UnresolvedIPs, want.Record.Instances = tt.awaited, map[string]netip.Addr{}
		for name := range strings.FieldsSeq(tt.recorded) {
			i, _ := strconv.Atoi(name[1:])
			want.Record.Written = append(want.Record.Written, nodeIP(i))
			want.Record.Instances[instanceOf(name).Key()] = nodeIP(i)
		}
		r := NewResult(Memory{}, false)
		if _, _, err := r.PrepareMembers(poolOfInstances(tt.pool), want, true); err != nil {
			t.Fatal(err)
		}
		if got := keysOf(r.MachineTarget.Target.ToRemove); got != tt.leaves || len(r.MachineTarget.Target.Missing) > 0 {
			t.Errorf("%s: %q leave, want %q", tt.about, got, tt.leaves)
		}
		own, remains := r.CurrentRecord(), strings.Fields(tt.remains)
		if len(own.Written) != len(remains) || len(own.Instances) != len(remains) {
			t.Errorf("%s: on record %v %v, want %v", tt.about, own.Written, own.Instances, remains)
		}
		for _, name := range remains {
			if ip := own.Instances[instanceOf(name).Key()]; !slices.Contains(own.Written, ip) {
				t.Errorf("%s: %s is not on record", tt.about, name)
			}
		}
	}
}

// A kept instance remains a member if its node was deleted or known only by address; one that is
// not in the pool does not join.
func TestInstancesThatAreKept(t *testing.T) {
	want := uniform("n1", "n1")
	want.Machines.Lookup = func(node string) (nic.Machine, error) {
		if !strings.HasPrefix(node, "n") {
			return nic.Machine{}, errors.New("the cluster has no such node any more")
		}
		return instanceOf(node), nil
	}
	want.Addresses = append(want.Addresses, lb.Address{Name: "10.0.0.2", IP: nodeIP(2)}, lb.Address{Name: "10.0.0.3", IP: nodeIP(3)})
	want.Retained = []netip.Addr{nodeIP(2), nodeIP(3)}
	want.Record.Written = []netip.Addr{nodeIP(1), nodeIP(2), nodeIP(3)}
	want.Record.Instances = map[string]netip.Addr{instanceOf("n1").Key(): nodeIP(1), instanceOf("n2").Key(): nodeIP(2), instanceOf("n3").Key(): nodeIP(3)}
	r := NewResult(Memory{}, false)
	if _, _, err := r.PrepareMembers(poolOfInstances("n1 n2"), want, true); err != nil || !r.MachineTarget.IsInSync() {
		t.Fatalf("%+v, %v", r.MachineTarget, err)
	}
	if got := keysOf(r.MachineTarget.Target.Members); got != "n1 n2" {
		t.Errorf("members %s", got)
	}
	if own := r.CurrentRecord(); len(own.Written) != 2 || len(own.Instances) != 2 {
		t.Errorf("on record %+v", own)
	}
}

// A joining machine is recorded before the handover, even if its address belonged to another.
func TestAnInstanceIsOnRecordBeforeItJoins(t *testing.T) {
	want := uniform("n1", "n1")
	want.Record.Written, want.Record.Instances = []netip.Addr{nodeIP(1)}, map[string]netip.Addr{instanceOf("n7").Key(): nodeIP(1)}
	r := NewResult(Memory{}, false)
	_, intent, err := r.PrepareMembers(poolOfInstances("n7"), want, true)
	if err != nil || intent == nil || intent.Instances[instanceOf("n1").Key()] != nodeIP(1) || intent.Instances[instanceOf("n7").Key()] != nodeIP(1) {
		t.Errorf("recorded %+v, %v", intent, err)
	}
	if joins, leaves := keysOf(r.MachineTarget.Target.Missing), keysOf(r.MachineTarget.Target.ToRemove); joins != "n1" || leaves != "n7" {
		t.Errorf("%q join, %q leave", joins, leaves)
	}
}

// A pool is in sync without machines that cannot join, and counts and messages reflect that. If
// several machines have one address, one that can join suffices.
func TestMachinesThatCannotJoin(t *testing.T) {
	gone := func(names string) (machines []nic.WaitingMachine) {
		for name := range strings.FieldsSeq(names) {
			machines = append(machines, nic.WaitingMachine{Machine: instanceOf(name), Reason: "Azure has no " + instanceOf(name).String()})
		}
		return machines
	}
	working := func(names string) (machines []nic.Machine) {
		for name := range strings.FieldsSeq(names) {
			machines = append(machines, instanceOf(name))
		}
		return machines
	}
	const twin = "n4" // has the address of n3
	for _, tt := range []struct {
		about   string
		pool    string
		state   nic.State
		desired int
		without string
		message string // empty if in sync
	}{
		{"all are there", "n1 n2 n3", nic.State{}, 3, "", ""},
		{"one cannot join", "n1 n3", nic.State{Unavailable: gone("n2")}, 2, "n2", ""},
		{"one cannot join, and the others are read", "n1 n3", nic.State{Unavailable: gone("n2"), Working: working("n1 n3")}, 2, "n2", ""},
		{"one cannot join, and one is written", "n3", nic.State{Unavailable: gone("n2"), Working: working("n1 n3")}, 2, "n2", "1 of 4 machines is being written"},
		{"the first of two with one address cannot join", "n1 n2", nic.State{Unavailable: gone("n3"), Working: working(twin)}, 3, "", "1 of 4 machines is being written"},
		{"none of two with one address can join", "n1 n2", nic.State{Unavailable: gone("n3 " + twin)}, 2, "n3 n4", ""},
		{"the second of two has joined", "n1 n2 " + twin, nic.State{Unavailable: gone("n3")}, 3, "", ""},
		{"none can", "", nic.State{Unavailable: gone("n1 n2 n3 " + twin)}, 0, "n1 n2 n3 n4", ""},
	} {
		want := uniform("n1 n2 n3", "n1 n2 n3 n4")
		want.SharedAddresses = []lb.Address{{Name: twin, IP: nodeIP(3), Machine: instanceOf(twin).Key()}}
		r := NewResult(Memory{}, false)
		if _, _, err := r.PrepareMembers(poolOfInstances(tt.pool), want, true); err != nil {
			t.Fatal(err)
		}
		r.RecordMachines(tt.state)
		var without []string
		for _, u := range r.Unusable {
			if without = append(without, u.Node); !strings.HasPrefix(u.Reason, "Azure has no instance") {
				t.Errorf("%s: %s", tt.about, u.Reason)
			}
		}
		if r.DesiredCount() != tt.desired || strings.Join(without, " ") != tt.without || r.IsInSync() != (tt.message == "") {
			t.Errorf("%s: desired %d, without %v, settled %t", tt.about, r.DesiredCount(), without, r.IsInSync())
		}
		if missing := r.Difference().Missing.Count; missing > r.DesiredCount() {
			t.Errorf("%s: %d missing of %d", tt.about, missing, r.DesiredCount())
		}
		if tt.message != "" && !strings.Contains(r.MemberProgress.Fault.Error(), tt.message) {
			t.Errorf("%s: %s", tt.about, r.MemberProgress.Fault)
		}
	}
}

// Of several nodes with one machine, the pool has that of the node that AddressOf returns. The others are named and not
// counted, and their addresses are no conflict, before and after the machine joins.
func TestNodesWithTheSameMachine(t *testing.T) {
	for _, tt := range []struct {
		about   string
		pool    string
		machine map[string]string // by node
		shared  string            // a node with the address of n3
		desired int
		without string
	}{
		{"the second has the machine of the first", "n1 n2", map[string]string{"n3": "n2"}, "", 2, "n3"},
		{"the first has the machine of the second", "n1 n3", map[string]string{"n2": "n3"}, "", 2, "n2"},
		{"three have one machine", "n1", map[string]string{"n2": "n1", "n3": "n1"}, "", 1, "n2 n3"},
		{"another machine has the address", "n1 n2 n4", map[string]string{"n3": "n2"}, "n4", 3, ""},
	} {
		for _, pool := range []string{"", tt.pool} {
			want := uniform("n1 n2 n3", "n1 n2 n3 n4")
			want.Machines.Lookup = func(node string) (nic.Machine, error) { return instanceOf(cmp.Or(tt.machine[node], node)), nil }
			if tt.shared != "" {
				want.SharedAddresses = []lb.Address{{Name: tt.shared, IP: nodeIP(3)}}
				addressOf := want.AddressOf
				want.AddressOf = func(machine string) (netip.Addr, bool) {
					if machine == instanceOf(tt.shared).Key() {
						return nodeIP(3), true
					}
					return addressOf(machine)
				}
			}
			r := NewResult(Memory{}, false)
			if _, _, err := r.PrepareMembers(poolOfInstances(pool), want, true); err != nil {
				t.Fatal(err)
			}
			if pool == "" {
				if got := keysOf(r.MachineTarget.Target.Missing); got != tt.pool {
					t.Errorf("%s: %q join, want %q", tt.about, got, tt.pool)
				}
				continue
			}
			r.RecordMachines(nic.State{})
			var without []string
			for _, u := range r.Unusable {
				if without = append(without, u.Node); !strings.HasPrefix(u.Reason, "its spec.providerID is that of node "+tt.machine[u.Node]+":") {
					t.Errorf("%s: %s", tt.about, u.Reason)
				}
			}
			slices.Sort(without)
			if r.DesiredCount() != tt.desired || strings.Join(without, " ") != tt.without || !r.IsInSync() || r.Difference().Missing.Count != 0 {
				t.Errorf("%s: desired %d, without %v, in sync %t, missing %+v", tt.about, r.DesiredCount(), without, r.IsInSync(), r.Difference().Missing)
			}
		}
	}
}
