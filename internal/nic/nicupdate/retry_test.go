// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// A pool changes its family: its machines are working at once.
func TestAPoolOfAnotherKind(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "")
		w.has("blue/0", "")
		follows := target("a/k8s", "blue/0", "")
		follows.AllNodes = false
		w.u.SetTarget(follows)
		w.wait(time.Minute)
		w.expectShown("blue", "")
		w.expect("bring", w.bring("a/k8s", "blue/0", ""), "working blue/0")
		w.wait(time.Minute)
		w.expectShown("blue", "a/k8s") // no instance changed
		w.expectShown("blue/0", "a/k8s")
	})
}

// A pool changes without affecting its machines: nothing is requested.
func TestAChangeThatChangesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes = []nic.Node{{Machine: vm("n1"), Configuration: "a"}, {Machine: machineOf("blue/0"), Configuration: "a"}}
		w.hasSet("blue", lb.UpgradeManual, "a/k8s")
		w.has("blue/0", "a/k8s")
		w.has("n1", "a/k8s")
		w.bring("a/k8s", "n1 blue/0", "")
		w.wait(time.Minute)
		w.take(&w.calls)
		w.take(&w.settled)
		w.expect("bring", w.bring("b/k8s", "n1 blue/0", ""), "working n1 blue/0")
		w.wait(time.Minute)
		w.expectCalls()
		w.expectSettled("+1m1s a/k8s", "+1m1s b/k8s")
	})
}

// A machine that must leave but is still shown in the pool is read after every change of the pool.
func TestLeavingMachineThatStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.bring("a/k8s", "", "n1")
		w.wait(time.Minute)
		w.has("n1", "a/k8s")
		w.has("n2", "")
		w.expect("bring", w.bring("a/k8s", "n2", "n1"), "working n1 n2")
		w.wait(time.Minute)
		w.expectShown("n1", "")
	})
}

// A machine found in sync is trusted for a growing period.
func TestMachineStateExpires(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "a/k8s")
		w.bring("a/k8s", "n1", "")
		for range 8 {
			w.wait(11 * time.Second)
			w.bring("a/k8s", "n1", "")
		}
		w.wait(10 * time.Minute)
		w.expectCalls("+1s LIST", "+21s GET n1", "+42s GET n1", "+1m24s GET n1", "+2m48s GET n1")
		w.wait(time.Hour)
		w.bring("a/k8s", "n1", "")
		w.wait(5 * time.Second)
		w.wait(10 * time.Second)
		w.bring("a/k8s", "n1", "")
		w.wait(time.Minute)
		w.expectCalls("+1h11m29s GET n1", "+1h12m3s GET n1")
	})
}

// A pool is forgotten: its machines keep it and move to their other pools.
func TestAPoolIsForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.bring("a/k8s", "n1", "")
		w.bring("a/web", "n1", "")
		w.bring("b/k8s", "n1", "")
		w.wait(time.Minute)
		w.take(&w.settled)
		w.u.Forget(poolID("a/k8s"))
		w.u.Forget(poolID("a/web"))
		w.u.Forget(poolID("a/web"))
		w.wait(time.Minute)
		w.expectShown("n1", "a/k8s a/web b/k8s")
		w.expectSettled("+1m4.1s b/k8s")
	})
	inWorld(t, func(w *world) { // while its machine is written
		w.has("n1", "")
		w.bring("a/k8s", "n1", "")
		w.wait(2 * time.Second)
		w.u.Forget(poolID("a/k8s"))
		w.bring("a/web", "n1", "")
		w.set(func() { w.written = 10 * time.Second })
		w.wait(time.Minute)
		w.expectShown("n1", "a/k8s a/web")
		w.expectSettled("+13.2s a/web")
		w.u.Forget(poolID("a/web"))
		if len(w.u.workers) > 0 {
			t.Error("what nobody needs is kept")
		}
	})
}

// A node moves to another load balancer: its machine moves with the next update.
func TestAPlaceChangesBesideAPool(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.has("n2", "")
		w.bring("a/k8s", "n1", "")
		w.bring("b/k8s", "n1", "")
		w.wait(time.Minute)
		w.set(func() { w.nodes = []nic.Node{{Machine: vm("n1"), Configuration: "b"}} })
		w.bring("a/web", "n2", "")
		w.wait(time.Minute)
		w.expectShown("n1", "b/k8s")
	})
}

// A second wait starts with the initial backoff.
func TestASecondWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "a/web")
		w.set(func() { w.nics["n1"].Provisioning = lb.Updating })
		w.bring("a/k8s", "n1", "")
		w.wait(5 * time.Minute)
		w.take(&w.calls)
		w.bring("a/web", "n1", "")
		w.wait(10 * time.Second)
		w.expectCalls("+5m1s GET n1", "+5m6.1s GET n1")
	})
}

// A list read before a machine was requested is stale: it may serve a write guarded by its etag,
// but not the result "nothing to write".
func TestAnOldList(t *testing.T) {
	inWorld(t, func(w *world) {
		w.stop()
		w.run(1, nil)
		w.written = 30 * time.Second
		w.has("n1", "")
		w.has("n2", "a/k8s")
		w.has("n3", "")
		w.has("n4", "")
		w.bring("a/k8s", "n1 n2 n3 n4", "")
		w.wait(10 * time.Second)
		w.has("n2", "")
		w.bring("a/k8s", "n1", "")
		w.failing("PUT n3", 1, armerror.Failure{Status: 403})
		w.bring("a/k8s", "n1 n2 n3 n4", "")
		w.wait(5 * time.Minute)
		w.expectShown("n2", "a/k8s")
		w.expect("calls", w.count(), "GET 1 LIST 1 PUT 4")
		w.expect("bring", w.bring("a/k8s", "n1 n2 n3 n4", ""), "failed n3: refused")
	})
	inWorld(t, func(w *world) {
		w.has("n1", "a/k8s")
		w.bring("a/k8s", "n1", "")
		w.wait(1050 * time.Millisecond) // the list is running
		w.bring("a/k8s", "", "")
		w.bring("a/k8s", "n1", "")
		w.wait(time.Minute)
		w.expectCalls("+1s LIST", "+2.05s GET n1")
	})
}

// A machine is sent away and back before the first write: it is not done in between.
func TestThereAndBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.has("n2", "")
		w.bring("a/k8s", "", "n1")
		w.wait(time.Minute)
		w.bring("a/k8s", "n1", "")
		w.wait(2 * time.Second) // the write ends at 3.1s
		w.bring("a/k8s", "", "")
		w.wait(1050 * time.Millisecond)
		w.bring("a/web", "n2", "")
		w.wait(time.Minute)
		w.expectShown("n1", "")
	})
}

// A machine gets another primary interface: that one is written.
func TestAnotherInterface(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.bring("a/k8s", "n1", "")
		w.wait(time.Minute)
		w.has("n1b", "")
		w.has("n1c", "")
		w.set(func() {
			w.nics["n1"].Machine = ""
			w.nics["n1b"].Machine, w.nics["n1c"].Machine = vm("n1").Key(), vm("n1").Key()
			w.nics["n1c"].Primary = false
		})
		w.bring("a/web", "n1", "")
		w.wait(time.Minute)
		w.expectShown("n1", "a/k8s")
		w.expectShown("n1b", "a/k8s a/web")
		w.expectShown("n1c", "")
		w.take(&w.calls)
		w.bring("a/web", "", "n1")
		w.wait(time.Minute)
		w.expectCalls("+2m1s GET n1b", "+2m1.1s PUT n1b")
		w.has("n1d", "")
		w.set(func() {
			delete(w.nics, "n1b")
			w.nics["n1c"].Machine, w.nics["n1d"].Machine = "", vm("n1").Key()
		})
		w.bring("a/web", "n1", "")
		w.wait(time.Minute)
		w.expectCalls("+3m1s GET n1b", "+3m1.1s LIST", "+3m1.2s PUT n1d")
	})
}

// Azure accepts a write but does not show it: this is a failure, not a reason to write forever.
func TestAWriteThatIsNotShown(t *testing.T) {
	for _, name := range []string{"n1", "blue/0", "green/0"} {
		inWorld(t, func(w *world) {
			w.hasSet("blue", lb.UpgradeManual, "")
			w.hasSet("green", lb.UpgradeManual, "a/k8s")
			w.has(name, "")
			w.ignores = true
			w.bring("a/k8s", name, "")
			w.wait(10 * time.Minute)
			if got := w.bring("a/k8s", name, ""); !strings.HasPrefix(got, "failed "+name) || !strings.HasSuffix(got, "does not show it") {
				t.Errorf("%s: %s", name, got)
			}
			if calls := w.count(); !strings.Contains(calls, "PUT 1") && !strings.Contains(calls, "PATCH 1") {
				t.Errorf("%s: %s", name, calls)
			}
		})
	}
}

// A pool is forgotten while its machine waits for admission: nothing of it remains.
func TestAPoolIsForgottenAtAGate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.gate = func(lb.ResourceID) (time.Time, string) {
			go w.u.Forget(poolID("a/k8s"))
			return time.Now().Add(time.Minute), "closed"
		}
		w.bring("a/k8s", "n1", "")
		w.wait(time.Hour)
		w.expectCalls()
		if len(w.u.workers)+len(w.u.activeWorkers) > 0 {
			t.Error("what nobody needs is kept")
		}
	})
}
