// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

const machineIDs = "/subscriptions/s0/resourceGroups/rg0/providers/Microsoft.Compute/virtualMachines/"

// machines is a pool of network interfaces: n1 has to join, n2 is a member and has to be Down. The
// last write of n1 failed, which is reported once.
type machines struct {
	Members
	*outside
	said bool
}

func (m *machines) DesiredPool(schedule.Ref) (diff.Desired, error) {
	at := map[string]netip.Addr{"n1": netip.MustParseAddr("10.0.0.1"), "n2": netip.MustParseAddr("10.0.0.2")}
	return diff.Desired{
		Addresses:    []lb.Address{{Name: "n1", IP: at["n1"]}, {Name: "n2", IP: at["n2"], AdminState: lb.Down}},
		IsOwnAddress: func(netip.Addr) bool { return true },
		AddressOf: func(machine string) (netip.Addr, bool) {
			ip, ok := at[machine[strings.LastIndex(machine, "/")+1:]]
			return ip, ok
		},
		Machines: &diff.Machines{Family: lb.IPv4, Lookup: func(node string) (nic.Machine, error) {
			return nic.ParseMachine("azure://" + machineIDs + node)
		}},
	}, nil
}

func (m *machines) SetTarget(t nic.Target) (state nic.State) {
	m.calls = append(m.calls, "BRING")
	if !m.said {
		m.said, state.Failed = true, []nic.Failure{{Machine: t.Members[0], Err: errors.New("its disk is full")}}
	}
	return state
}

// Members are handed over once per attempt, after recording and regardless of the admin states; a
// machine's failure is reported even after a second try.
func TestMembersAreHandedOverOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		set    func(o *outside)
		asks   string
		failed bool
	}{
		"admin states are written":   {asks: "GET MACHINES RECORD PUT BRING", failed: true},
		"another client wrote":       {set: fails("PUT", armerror.Failure{Status: 412}), asks: "GET MACHINES RECORD PUT GET MACHINES RECORD PUT BRING", failed: true},
		"Azure refuses them":         {set: fails("PUT", armerror.Failure{Status: 400}), asks: "GET MACHINES RECORD PUT BRING", failed: true},
		"the ledger does not answer": {set: fails("RECORD", armerror.Failure{Status: 409}), asks: "GET MACHINES RECORD"},
		"the machines are not known": {set: fails("MACHINES", armerror.Failure{Status: 409}), asks: "GET MACHINES"},
		"the second read fails":      {set: secondReadFails, asks: "GET MACHINES RECORD PUT GET"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outside{fails: map[string]armerror.Failure{}, pool: lb.Pool{NIC: true, Etag: "1", Addresses: []lb.Address{
				{Name: "i2", Interface: "i2", IP: netip.MustParseAddr("10.0.0.2"), Machine: strings.ToLower(machineIDs + "n2")},
			}}}
			if tt.set != nil {
				tt.set(o)
			}
			m := &machines{outside: o}
			c := Config{Interval: time.Minute, AdminState: true, Azure: o, Cluster: m, StatusStore: o, Members: m, Log: slog.New(slog.DiscardHandler)}
			r := c.updatePool(t.Context(), o.try(true, true), schedule.History{})
			if got := strings.Join(o.calls, " "); got != tt.asks {
				t.Errorf("%s: %v", got, r.Fault)
			}
			if failed := r.MemberProgress != nil && strings.Contains(r.MemberProgress.Fault.Error(), "its disk is full"); failed != tt.failed {
				t.Errorf("%+v", r.MemberProgress)
			}
		})
	}
}

// secondReadFails causes a conflicting write and a failing read after it.
func secondReadFails(o *outside) {
	fails("PUT", armerror.Failure{Status: 412})(o)
	o.thenFails = map[string]armerror.Failure{"GET": {Status: 409}}
}
