// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// A new pool is empty. Its machines are handed over once recorded, and its Service is notified when
// Azure shows them; the worker is free meantime.
func TestMachinesJoinAPool(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.nics(web, "")
		w.nics(api, "")
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(time.Second)
		w.change(api, "n1=10.0.0.1")
		w.wait(time.Second)
		w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1 10.0.0.2]", "+250ms BRING web [n1 n2]-[]",
			"+1.25s GET api", "+1.25s RECORD api [10.0.0.1]", "+1.25s BRING api [n1]-[]")
		w.expectReports("web Postponed", "api Postponed")
		w.wait(10 * time.Second)
		w.expectCalls("+5.25s GET web", "+5.25s MACHINES web", "+5.25s BRING web [n1 n2]-[]",
			"+6.25s GET api", "+6.25s MACHINES api", "+6.25s BRING api [n1]-[]")
		w.expectReports("web Written Updated:web", "api Written Updated:api")
		w.expectInterfaces(web, "nic-n1 nic-n2")
		if n := w.lanes.Backlog().Operations; n != 0 {
			t.Errorf("%d operations wait", n)
		}
	})
}

// A deleted pool is released: machines that reference it would be rejected in all other pools.
func TestMissingPoolIsReleased(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.nics(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expectReports("web Postponed", "web Written Updated:web")
		w.set(func() { delete(w.pools, web.Key()); w.calls = nil })
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(10 * time.Second)
		w.expectReports("web Stale")
		if got := strings.Join(w.calls, ", "); !strings.HasSuffix(got, "FORGET web") || strings.Count(got, "FORGET") != 1 {
			t.Errorf("calls %s", got)
		}
	})
}

// The record and the cluster determine what leaves; machines without a node stay.
func TestMachinesLeaveAPool(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.nics(web, "n1 n2 gateway n3")
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3")
		w.wait(time.Second)
		w.expectReports("web Unchanged")
		w.expectCalls("+250ms GET web", "+250ms MACHINES web", "+250ms BRING web [n1 n2 n3]-[]")
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expectInterfaces(web, "nic-n1 nic-gateway")
		w.expectReports("web Postponed", "web Written Updated:web")
		if got := w.ledger["web"]; len(got) != 1 {
			t.Errorf("%v is on record", got)
		}
	})
}

// A pool in sync is handed over, too, because writes of its machines for other pools must keep them
// in it. Checking it costs only the read, and an idle one nothing.
func TestPoolInSyncIsHandedOver(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3, ResyncPeriod: 10 * time.Minute}, func(w *world) {
		w.nics(web, "n1")
		w.look(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.expectReports("web Unchanged")
		if len(w.members.targets) != 1 {
			t.Error("it was not handed over")
		}
		if !w.lanes.IsInSync(web, membership.Fingerprint(w.wanted["web"])) {
			t.Error("it is not known to be in sync")
		}
	})
}

// A failed machine is a failed attempt and consumes a retry. Present machines stay, and the next
// attempt retries.
func TestAMachineThatFails(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.nics(web, "")
		w.members.fails["n2"] = armerror.Failure{Status: 409}
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(10 * time.Second)
		w.expectReports("web Postponed", "web Retriable Retrying:web")
		w.expectInterfaces(web, "nic-n1")
		w.wait(interval)
		w.wait(10 * time.Second)
		w.expectReports("web Postponed", "web Written Updated:web")
		w.expectInterfaces(web, "nic-n1 nic-n2")
	})
}

// Machines may complete while the attempt that handed them over is running, and a pool write in
// progress does not delay joins.
func TestMachinesThatAreDoneAtOnce(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.nics(web, "n1")
		w.pools[web.Key()].Provisioning = lb.Updating
		w.members.atOnce = true
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(time.Second)
		w.set(func() { w.pools[web.Key()].Provisioning = lb.Succeeded })
		w.wait(time.Second)
		w.expectReports("web Postponed", "web Written Updated:web")
	})
}

// A permanent failure is given up and reported once. While another machine may succeed, attempts
// continue.
func TestAMachineThatIsRefused(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.nics(web, "")
		w.members.fails["n1"], w.members.fails["n2"] = armerror.Failure{Status: 409}, armerror.Failure{Status: 403}
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(5*time.Second + 300*time.Millisecond)
		w.expectReports("web Postponed", "web Retriable Retrying:web")
		w.set(func() { w.members.fails["n1"] = armerror.Failure{Status: 403} })
		w.wait(interval)
		w.wait(5*time.Second + 300*time.Millisecond)
		last := w.reports[len(w.reports)-1]
		if want := "1 of 2 machines failed: virtual machine n1: Azure refuses n1"; last.Fault.Error() != want {
			t.Errorf("%q, want %q", last.Fault.Error(), want)
		}
		w.expectReports("web Postponed", "web Terminal Failed:web")
		w.wait(5 * interval)
		w.expectReports()
	})
}

// Machines that Azure is updating, and nodes with unknown machines, are waited for by name, without
// consuming retries or blocking others.
func TestMachinesThatAreWaitedFor(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 1}, func(w *world) {
		w.nics(web, "")
		w.members.waits["n2"] = "network interface nic-n2 is Updating"
		w.members.homeless["n3"] = "it has no spec.providerID yet"
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3")
		w.wait(time.Second)
		want := "waiting: 1 of 2 machines is being written; 2 wait: node n3: it has no spec.providerID yet, virtual machine n2: network interface nic-n2 is Updating"
		w.set(func() {
			if got := w.reports[0].Fault.Error(); got != want {
				t.Errorf("%q\nwant %q", got, want)
			}
		})
		w.wait(10 * time.Minute)
		w.expectInterfaces(web, "nic-n1")
		w.set(func() {
			if n := len(w.reports); n > 13 {
				t.Errorf("%d attempts in ten minutes", n)
			}
			w.reports = nil
			delete(w.members.waits, "n2")
			delete(w.members.homeless, "n3")
		})
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3")
		w.wait(10 * time.Second)
		w.expectReports("web Postponed", "web Written Updated:web")
	})
}

// A pool is in sync without a machine that Azure does not have, and no write is reported. Once the
// machine exists and has joined, the pool is read.
func TestAMachineThatIsNotThere(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 1, ResyncPeriod: time.Hour}, func(w *world) {
		w.nics(web, "n1")
		w.members.gone["n2"] = true
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(10 * time.Second)
		last := w.reports[len(w.reports)-1]
		w.expectReports("web Postponed", "web Unchanged")
		if !last.InSync || last.Desired != 1 || last.Observed != 1 || len(last.Unusable) != 1 || last.Unusable[0].Node != "n2" {
			t.Errorf("reported %+v", last)
		}
		if !w.lanes.IsInSync(web, membership.Fingerprint(w.wanted["web"])) {
			t.Error("it is not known to be in sync")
		}
		w.set(func() { w.calls = nil })
		w.wait(10 * time.Minute)
		w.expectCalls()
		w.set(func() { delete(w.members.gone, "n2") })
		w.members.done(web, machineOf("n2"), true)
		w.wait(10 * time.Second)
		last = w.reports[len(w.reports)-1]
		w.expectReports("web Unchanged")
		if last.Desired != 2 || last.Observed != 2 || len(last.Unusable) > 0 {
			t.Errorf("reported %+v", last)
		}
	})
}

// A change during machine writes is handed over at once, and successive changes share an attempt. A
// lost completion signal costs a minute.
func TestChangesWhileMachinesAreWritten(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.nics(web, "")
		w.members.deaf = true
		w.change(web, "n1=10.0.0.1")
		w.wait(500 * time.Millisecond)
		w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1]", "+250ms BRING web [n1]-[]")
		for _, more := range []string{"n1=10.0.0.1 n2=10.0.0.2", "n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3", "n2=10.0.0.2 n3=10.0.0.3"} {
			w.change(web, more)
			w.wait(100 * time.Millisecond)
		}
		w.wait(time.Second)
		w.expectCalls("+1.25s GET web", "+1.25s RECORD web [10.0.0.1 10.0.0.2 10.0.0.3]", "+1.25s BRING web [n2 n3]-[]")
		w.wait(2 * time.Minute)
		w.expectInterfaces(web, "nic-n2 nic-n3")
	})
}
