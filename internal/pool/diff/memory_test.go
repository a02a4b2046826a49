// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// Each change of an admin state is reported once: what the attempt set, and what a lost write of an earlier one had set.
func TestDownIsReportedOnce(t *testing.T) {
	var m Memory
	step := func(about string, r Result, downed, restored string) {
		t.Helper()
		gotDown, gotUp := m.RecordResult(r, false)
		if fmt.Sprint(gotDown) != downed || fmt.Sprint(gotUp) != restored {
			t.Errorf("%s: down %v, restored %v", about, gotDown, gotUp)
		}
	}
	members := addresses("n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3")
	record := Record{Down: nodeIPs(1)}
	step("a failure reports nothing", Result{Outcome: Retriable, firstRecord: &record, Change: Change{MarkedDown: nodeIPs(2)}}, "[]", "[]")
	step("what was on record at the start was reported", Result{Outcome: Unchanged, Addresses: members, firstRecord: &Record{Down: nodeIPs(3)}, down: nodeIPs(1)}, "[]", "[]")
	step("what the attempt set", Result{Outcome: Written, Addresses: members, down: nodeIPs(1, 2), Change: Change{MarkedDown: nodeIPs(2)}}, "[10.0.0.2]", "[]")
	step("once", Result{Outcome: Unchanged, Addresses: members, down: nodeIPs(1, 2)}, "[]", "[]")
	step("what a lost write had set", Result{Outcome: Unchanged, Addresses: members, down: nodeIPs(1, 2, 3)}, "[10.0.0.3]", "[]")
	step("what a lost write had restored, and what the attempt did", Result{Outcome: Written, Addresses: members, down: nodeIPs(3), Change: Change{markedUp: nodeIPs(1)}}, "[]", "[10.0.0.1 10.0.0.2]")
	step("a node that has left is not restored", Result{Outcome: Written, Addresses: members[:2]}, "[]", "[]")
}

// What is stored of a write between attempts.
func TestRecordAfterAWrite(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	m := Memory{MayRevert: true}
	failed := Result{Outcome: Retriable, pendingWrites: pendingWrites{pendingEtag: "2", unchangedEtag: "1"}}
	m.StorePending(&failed, now)
	if m.PendingEtag != "2" || m.unchangedEtag != "1" || !m.MayRevert || !m.PendingSince.IsZero() {
		t.Errorf("after a failure: %+v", m)
	}
	pending := Result{Outcome: Written, Addresses: addresses("n1=10.0.0.1"), pendingWrites: pendingWrites{HasPending: true, pendingEtag: "3"}}
	m.StorePending(&pending, now)
	if m.PendingEtag != "3" || m.unchangedEtag != "" || m.MayRevert || !m.PendingSince.Equal(now) {
		t.Errorf("after a rewrite: %+v", m)
	}
}

// What an attempt records before it writes addresses.
func TestRecordBeforeAWrite(t *testing.T) {
	observed := lb.Pool{Etag: "1", Addresses: addresses("n1=10.0.0.1 vm=10.9.9.9")}
	want := Desired{Addresses: addresses("n1=10.0.0.1/Down n2=10.0.0.2"), Record: Record{Adopted: true, Written: nodeIPs(1)}}
	r := NewResult(Memory{PendingEtag: "0"}, true)
	write, intent, err := r.PrepareAddresses(observed, want, true)
	if !write || intent == nil || err != nil || r.Outcome != Written || !r.ChangesMembers || r.firstRecord == nil || !r.mayHavePending {
		t.Fatalf("%t %v %v, %+v", write, intent, err, r)
	}
	r.Observed = 2
	if got := *intent; fmt.Sprint(got.Written) != "[10.0.0.1 10.0.0.2]" || fmt.Sprint(got.Down) != "[10.0.0.1]" || got.Desired != 2 || got.Add != 1 || got.Remove != 0 || got.Update != 1 || got.OnlyStates {
		t.Errorf("%+v", got)
	}
	want.Record = Record{Adopted: true, Written: nodeIPs(1, 2), Down: nodeIPs(1)}
	if write, intent, err = new(Result).PrepareAddresses(observed, want, true); !write || intent != nil || err != nil {
		t.Errorf("all of it is on record: %t %v %v", write, intent, err)
	}
	want.Record.Adopted = false
	want.IsOwnAddress = func(netip.Addr) bool { return false }
	if write, intent, err = new(Result).PrepareAddresses(observed, want, true); !write || intent == nil || err != nil {
		t.Errorf("a takeover: %t %v %v", write, intent, err)
	}
}

// A recorded Down is kept while an interface that is Down cannot be identified, and only then.
func TestDownOfUnidentifiedInterfaces(t *testing.T) {
	for about, tt := range map[string]struct {
		pool        []lb.Address
		down        string
		recordsMore bool
	}{
		"one that is Down is not identified": {pool: []lb.Address{{Machine: "x", AdminState: lb.Down}}, down: "[10.0.0.1]"},
		"it is not Down":                     {pool: []lb.Address{{Machine: "x"}}, down: "[]", recordsMore: true},
		"another one is, and the node too":   {pool: []lb.Address{{Machine: "x", AdminState: lb.Down}, {Machine: "n1"}}, down: "[]", recordsMore: true},
		"all are identified":                 {pool: []lb.Address{{Machine: "n1"}}, down: "[]", recordsMore: true},
	} {
		c := computeStates(lb.Pool{Addresses: tt.pool}, Desired{
			Addresses: addresses("n1=10.0.0.1"), AddressOf: func(machine string) (netip.Addr, bool) { return nodeIP(1), machine == "n1" },
		}, nodeIPs(1))
		if fmt.Sprint(c.managedDown) != tt.down || c.hasExtraRecords != tt.recordsMore || !c.IsEmpty() {
			t.Errorf("%s: down %v, the record has more %t", about, c.managedDown, c.hasExtraRecords)
		}
	}
}

// A summary of failed machines is retried if one of them is, and names no times or writes of a single machine.
func TestFailuresOfMachinesAreSummarized(t *testing.T) {
	later := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	fail := func(node string, a armerror.Failure) nic.Failure {
		return nic.Failure{Machine: machineOf(node), Err: armerror.Classify(a, errors.New("Azure refuses"))}
	}
	refused, busy := fail("n1", armerror.Failure{Status: 400}), fail("n2", armerror.Failure{Status: 409, RetryAt: later, MayBeApplied: true})
	gone, stops := fail("n3", armerror.Failure{Status: 404, TargetMissing: true}), fail("n4", armerror.Failure{IsShutdown: true})
	for about, tt := range map[string]struct {
		failed  []nic.Failure
		outcome Outcome
		prefix  string
	}{
		"one is refused":            {[]nic.Failure{refused}, Terminal, "1 of 3 machines failed: virtual machine n1: Azure refuses"},
		"one is busy":               {[]nic.Failure{refused, busy}, Retriable, "2 of 3 machines failed: virtual machine n1: Azure refuses, virtual machine n2: Azure refuses"},
		"one is gone":               {[]nic.Failure{gone}, Retriable, "1 of 3 machines failed: "},
		"Weir stops":                {[]nic.Failure{stops}, Postponed, "waiting: 1 of 3 machines failed: "},
		"more than are in the pool": {[]nic.Failure{stops, gone, busy, refused}, Retriable, "4 of 4 machines failed: virtual machine n1: "},
	} {
		h := MachineTarget{Target: nic.Target{Pool: nic.Pool{Members: []nic.Machine{machineOf("n1"), machineOf("n2")}}, ToRemove: []nic.Machine{machineOf("n3")}}}
		given := fmt.Sprint(tt.failed)
		p := h.summarizeFailures(tt.failed)
		if p.Outcome != tt.outcome || !strings.HasPrefix(p.Fault.Error(), tt.prefix) || !p.Fault.RetryAt.IsZero() || p.Fault.MayBeApplied || p.Fault.OperationFailed {
			t.Errorf("%s: %s, %+v", about, p.Outcome, p.Fault)
		}
		if fmt.Sprint(tt.failed) != given {
			t.Errorf("%s: the given failures were sorted", about)
		}
	}
	long := strings.Repeat("x", maxMessageBytes)
	text := formatFailures("6 machines failed: ", []string{long, long, long, long, long, long}, make([]string, 6))
	if n := strings.Count(text, "xxx"); len(text) > maxFailureBytes || n == 0 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
