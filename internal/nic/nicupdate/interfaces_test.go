// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// A machine joins: it waits one second for other pools, is found by a list, and is written with the
// list's etag. Its other pools stay. Then the pool is notified.
func TestAMachineJoinsAndLeaves(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "a/outbound")
		w.expect("bring", w.bring("a/k8s", "n1", ""), "working n1")
		w.wait(time.Minute)
		w.expectCalls("+1s LIST", "+1.1s PUT n1")
		w.expectShown("n1", "a/outbound a/k8s")
		w.expectSettled("+3.1s a/k8s")

		w.expect("bring", w.bring("a/k8s", "", "n1"), "working n1; looking")
		w.wait(time.Minute)
		w.expectCalls("+1m1s GET n1", "+1m1.1s PUT n1") // its interface is known by now
		w.expectShown("n1", "a/outbound")
		w.expectSettled("+1m3.1s a/k8s")
		w.u.Forget(poolID("a/k8s"))
		if len(w.u.workers)+len(w.u.activeWorkers)+len(w.u.pools) > 0 {
			t.Error("what nobody needs is kept")
		}
	})
}

// Two hundred nodes join a pool at once: one list, one write each, within the concurrency limit.
// Setting the same target a hundred times costs nothing.
func TestManyMachinesJoin(t *testing.T) {
	inWorld(t, func(w *world) {
		var names []string
		for n := range 200 {
			names = append(names, fmt.Sprintf("n%03d", n))
			w.has(names[n], "")
		}
		text := strings.Join(names, " ")
		for range 100 {
			w.expect("bring", w.bring("a/k8s", text, ""), "working "+text)
		}
		w.wait(10 * time.Minute)
		w.expect("calls", w.count(), "LIST 1 PUT 200")
		w.expectSettled("+1m41.1s a/k8s")
		w.expect("bring", w.bring("a/k8s", text+" n200", ""), "working n200")
		w.has("n200", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "LIST 1 PUT 1")
		if w.most != 4 {
			t.Errorf("%d interfaces were written at a time", w.most)
		}
	})
}

// Two hundred nodes join four load balancers, each with an internal one, in both families: one
// write each. A scale set takes one model write and one upgrade request. Then a hundred Services
// come and go.
func TestRequestsOfTwoHundredNodes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cancel()
		w.stop()
		w.run(20, nil)
		members := map[string][]string{}
		for n := range 200 {
			on, alone := fmt.Sprint("lb", n%4), fmt.Sprintf("n%03d", n)
			w.has(alone, on+"/outbound")
			uniform := fmt.Sprintf("set%d/%d", n%4, n/4)
			w.has(uniform, on+"/outbound")
			members[on] = append(members[on], alone, uniform)
			w.nodes = append(w.nodes, nic.Node{Machine: vm(alone), Configuration: on}, nic.Node{Machine: machineOf(uniform), Configuration: on})
		}
		for n := range 4 {
			w.hasSet(fmt.Sprint("set", n), lb.UpgradeManual, fmt.Sprintf("lb%d/outbound", n))
		}
		hand := func() {
			for on, names := range members {
				for _, pool := range []string{on + "/k8s", on + "/k8s-6", on + "-internal/k8s", on + "-internal/k8s-6"} {
					next := target(pool, strings.Join(names, " "), "")
					next.Configuration = on
					if w.shows(names[0]) != on+"/outbound" {
						next.Missing = nil
					}
					w.u.SetTarget(next)
				}
			}
		}
		hand()
		w.wait(10 * time.Minute)
		calls := w.count()
		w.expect("calls", calls, "INSTANCES 12 LIST 1 PATCH 4 PUT 200 SET 12 UPGRADE 4")
		for n := range 200 {
			on := fmt.Sprint("lb", n%4)
			want := on + "/outbound " + on + "-internal/k8s " + on + "/k8s|" + on + "-internal/k8s-6 " + on + "/k8s-6"
			w.expectShown(fmt.Sprintf("n%03d", n), want)
			w.expectShown(fmt.Sprintf("set%d/%d", n%4, n/4), want)
		}
		for range 100 {
			hand()
		}
		w.wait(time.Hour)
		w.expect("a hundred Services more", w.count(), "")
		if w.most > 20 {
			t.Errorf("%d resources were written at a time", w.most)
		}
	})
}

// If the list shows no primary interface, because it is in another resource group, the virtual
// machine is read for it once.
func TestAnInterfaceOfAnotherResourceGroup(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "a/outbound")
		w.has("second", "")
		w.set(func() {
			w.nics["n1"].ID.ResourceGroup = "network"
			w.nics["second"].Machine, w.nics["second"].Primary = vm("n1").Key(), false
		})
		w.bring("a/k8s", "n1", "")
		w.wait(time.Minute)
		w.expectCalls("+1s LIST", "+1.1s VM n1", "+1.2s GET n1", "+1.3s PUT n1")
		w.expectShown("n1", "a/outbound a/k8s")
		w.expectShown("second", "")
		w.bring("a/k8s", "", "n1")
		w.wait(time.Minute)
		w.expectCalls("+1m1s GET n1", "+1m1.1s PUT n1")
		w.expectShown("n1", "a/outbound")
	})
}

// A missing machine, and one that names no interface.
func TestAMachineWithoutAnInterface(t *testing.T) {
	inWorld(t, func(w *world) {
		w.failing("VM n1", 1, armerror.Failure{Status: 404, TargetMissing: true})
		w.bring("a/k8s", "n1", "")
		w.bring("b/k8s", "n2", "")
		w.wait(3 * time.Second)
		w.expect("one is gone", w.bring("a/k8s", "n1", ""), "without n1: Azure has no virtual machine n1")
		w.expect("one has none", w.bring("b/k8s", "n2", ""), "without n2: virtual machine n2 has no network interface")
	})
}

// One write covers all pools of a machine: both families, the internal load balancer, and a move to
// another load balancer.
func TestOneWriteForAllPools(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.bring("a/k8s", "n1", "")
		w.wait(500 * time.Millisecond)
		w.bring("a/k8s-6", "n1", "")
		w.bring("a-internal/k8s", "n1", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "LIST 1 PUT 1")
		w.expectShown("n1", "a-internal/k8s a/k8s|a/k8s-6")
		w.expectSettled("+3.1s a-internal/k8s", "+3.1s a/k8s", "+3.1s a/k8s-6")

		w.set(func() { w.nodes = []nic.Node{{Machine: vm("n1"), Configuration: "b"}} })
		for _, pool := range []string{"a/k8s", "a/k8s-6", "a-internal/k8s"} {
			w.bring(pool, "", "n1")
		}
		w.bring("b/k8s", "n1", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "GET 1 PUT 1")
		w.expectShown("n1", "b/k8s")
	})
}

// A change during a write causes a second write; the pool is notified after both.
func TestAChangeDuringAWrite(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.bring("a/k8s", "n1", "")
		w.wait(2 * time.Second)
		w.expect("bring", w.bring("a/k8s", "", ""), "working n1; looking")
		w.wait(time.Minute)
		w.expectCalls("+1s LIST", "+1.1s PUT n1", "+3.1s GET n1", "+3.2s PUT n1")
		w.expectShown("n1", "")
		w.expectSettled("+5.2s a/k8s")
	})
}

// Azure shows a pool that differs from its machines: they are read again, with a growing delay.
func TestAPoolThatShowsOtherwise(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "a/k8s")
		w.has("n2", "a/k8s")
		w.bring("a/k8s", "n1 n2", "")
		w.wait(time.Hour)
		w.expectCalls("+1s LIST")
		w.has("n1", "a/other")
		w.expect("bring", w.bring("a/k8s", "n1 n2", ""), "working n1 n2")
		w.wait(9 * time.Second)
		w.expectCalls("+1h0m1s LIST", "+1h0m1.1s PUT n1")
		w.expectShown("n1", "a/other a/k8s")
		for range 3 {
			w.bring("a/k8s", "n1 n2", "")
			w.wait(9 * time.Minute)
		}
		w.expect("calls", w.count(), "LIST 3")
		for range 100 {
			w.bring("a/k8s", "n1 n2", "")
		}
		w.wait(time.Hour)
		w.expect("calls", w.count(), "LIST 1")
	})
}

// A machine shown in a pool it must leave is read although it was seen to have left.
func TestLeavingMachineIsRead(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.bring("a/k8s", "", "n1")
		w.wait(time.Minute)
		w.has("n1", "a/k8s")
		w.bring("a/k8s", "", "")
		w.bring("a/k8s", "", "n1")
		w.wait(time.Minute)
		w.expectShown("n1", "")
	})
}

// A failure is reported to each pool once. The notified pool decides when to retry.
func TestFailureIsReportedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.has("n2", "")
		w.failing("PUT n1", 1, armerror.Failure{Status: 403})
		w.bring("a/k8s", "n1 n2", "")
		w.bring("a/k8s-6", "n1 n2", "")
		w.wait(time.Hour)
		w.expect("calls", w.count(), "LIST 1 PUT 2")
		w.expectSettled("+3.1s a/k8s", "+3.1s a/k8s-6")
		w.expect("bring", w.bring("a/k8s", "n1 n2", ""), "failed n1: refused")
		w.expect("bring", w.bring("a/k8s-6", "n1 n2", ""), "failed n1: refused")
		w.wait(time.Hour)
		w.expect("calls", w.count(), "")
		w.expect("bring", w.bring("a/k8s", "n1 n2", ""), "working n1")
		w.expect("bring", w.bring("a/k8s-6", "n1 n2", ""), "working n1")
		w.wait(time.Hour)
		w.expect("calls", w.count(), "GET 1 PUT 1")
		w.expectShown("n1", "a/k8s|a/k8s-6")
		w.expect("bring", w.bring("a/k8s", "n1", ""), "working n2")
	})
}

// No pool retries before the Retry-After time.
func TestATimeThatAzureNames(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.failing("PUT", 1, armerror.Failure{Status: 429, RetryAt: time.Now().Add(30 * time.Second)})
		for range 3 {
			w.bring("a/k8s", "n1", "")
			w.wait(5 * time.Second)
		}
		w.wait(time.Minute)
		w.expectCalls("+1s LIST", "+1.1s PUT n1", "+30s GET n1", "+30.1s PUT n1")
	})
}

// A failed list fails all machines that wait for it.
func TestAListThatFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.has("n2", "")
		w.failing("LIST", 1, armerror.Failure{Status: 500})
		w.bring("a/k8s", "n1 n2", "")
		w.wait(time.Minute)
		w.expectCalls("+1s LIST")
		w.expect("bring", w.bring("a/k8s", "n1 n2", ""), "failed n1: refused; failed n2: refused")
		w.bring("a/k8s", "n1 n2", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "LIST 1 PUT 2")
	})
}

// A write conflict: one more read and write. A second conflict is a failure.
func TestOvertaken(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.failing("PUT", 1, armerror.Failure{Status: 412})
		w.bring("a/k8s", "n1", "")
		w.wait(time.Minute)
		w.expectCalls("+1s LIST", "+1.1s PUT n1", "+3.1s GET n1", "+3.2s PUT n1")
		w.failing("PUT", 2, armerror.Failure{Status: 412})
		w.bring("a/k8s", "", "n1")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "GET 2 PUT 2")
		w.expect("bring", w.bring("a/k8s", "", "n1"), "failed n1: refused")
	})
}

// A list without etags: each interface is read before it is written.
func TestAListWithoutEtags(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare = true
		w.has("n1", "")
		w.has("n2", "a/k8s")
		w.bring("a/k8s", "n1 n2", "")
		w.wait(time.Minute)
		w.expectCalls("+1s LIST", "+1.1s GET n1", "+1.2s PUT n1")
	})
}

// A resource that Azure is updating is polled with backoff, without a failure. The pool is notified
// when nothing is working, and when the wait ends.
func TestAWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.set(func() { w.nics["n1"].Provisioning = lb.Updating })
		w.bring("a/k8s", "n1", "")
		w.wait(20 * time.Second)
		w.expectSettled("+1.1s a/k8s")
		w.expect("bring", w.bring("a/k8s", "n1", ""), "waits n1: network interface nic-n1 is Updating")
		w.expectCalls("+1s LIST", "+6.1s GET n1", "+16.2s GET n1")
		w.set(func() { w.nics["n1"].Provisioning = lb.Succeeded })
		w.wait(time.Minute)
		w.expectCalls("+36.3s GET n1", "+36.4s PUT n1")
		w.expectSettled("+38.4s a/k8s")
		w.expect("bring", w.bring("a/k8s", "n1", "n1"), "working n1")
	})
}

// A machine that cannot join is polled individually and joins once it can; the others are not read.
func TestAMachineThatCannotJoin(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "a/k8s")
		hand := func() string {
			next := target("a/k8s", "n1 n2", "")
			next.Missing = machines("n2")
			return told(w.u.SetTarget(next))
		}
		hand()
		w.wait(time.Minute)
		const without = "without n2: virtual machine n2 has no network interface"
		w.expect("bring", hand(), without)
		w.set(func() { w.calls = nil })
		for range 5 {
			w.wait(time.Minute)
			w.expect("again", hand(), without)
		}
		w.set(func() {
			if calls := strings.Join(w.calls, ", "); strings.Contains(calls, "n1") || strings.Contains(calls, "PUT") {
				t.Error(calls)
			}
		})
		w.expectSettled("+1.2s a/k8s")
		w.has("n2", "a/outbound")
		w.wait(2 * time.Minute)
		w.expectShown("n2", "a/outbound a/k8s")
		if n := len(w.settled); n != 1 {
			t.Errorf("settled %v", w.settled)
		}
	})
}

// A deleted machine has left its pools, and is waited for where it belongs.
func TestAMachineThatIsGone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "a/k8s")
		w.bring("a/k8s", "n1", "")
		w.wait(time.Minute)
		w.set(func() { delete(w.nics, "n1") })
		w.bring("a/k8s", "n1 n2", "")
		w.wait(30 * time.Second)
		w.expect("bring", w.bring("a/k8s", "n1 n2", ""), "working n1; without n2: virtual machine n2 has no network interface")
		w.bring("a/k8s", "", "n1 n2")
		w.wait(30 * time.Second)
		w.bring("a/k8s", "", "")
		w.wait(time.Second)
		w.expect("bring", w.bring("a/k8s", "", ""), "")
	})
}

// A hanging machine blocks no other and times out.
func TestAStuckMachineHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.written = time.Hour
		w.bring("a/k8s", "n1", "")
		w.wait(2 * time.Second)
		w.set(func() { w.written = 2 * time.Second })
		w.has("n2", "")
		w.has("n3", "")
		w.bring("a/k8s", "n1 n2 n3", "")
		w.wait(10 * time.Second)
		w.expectShown("n2", "a/k8s")
		w.expectShown("n3", "a/k8s")
		w.expectSettled()
		w.wait(10 * time.Minute)
		w.expectSettled("+10m1s a/k8s")
		w.expect("bring", w.bring("a/k8s", "n1 n2 n3", ""), "failed n1: context deadline exceeded")
	})
}

// After a start nothing is requested until all pools have a target, or for 30 seconds.
func TestAfterAStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "a/k8s a/web")
		w.set(func() { w.expected = []lb.PoolID{poolID("a/k8s"), poolID("a/web")} })
		w.bring("a/k8s", "n1", "")
		w.wait(20 * time.Second)
		w.expectCalls()
		w.bring("a/web", "n1", "")
		w.wait(5 * time.Second)
		w.expectCalls("+20s LIST")
	})
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.set(func() { w.expected = []lb.PoolID{poolID("a/k8s"), poolID("a/web")} })
		w.bring("a/k8s", "n1", "")
		w.wait(time.Minute)
		w.expectCalls("+30s LIST", "+30.1s PUT n1")
		w.set(func() { w.expected = append(w.expected, poolID("a/new")) })
		w.bring("a/k8s", "", "n1")
		w.wait(10 * time.Second)
		w.expectCalls("+1m1s GET n1", "+1m1.1s PUT n1") // a new pool has no machines
	})
}

// A node moves to another load balancer without a pool change: the machine moves with the next
// target.
func TestANodeIsPlacedElsewhere(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.bring("a/k8s", "n1", "")
		w.bring("b/k8s", "n1", "")
		w.wait(time.Minute)
		w.expectShown("n1", "a/k8s")
		w.take(&w.settled)
		w.set(func() { w.nodes = []nic.Node{{Machine: vm("n1"), Configuration: "b"}} })
		w.bring("b/k8s", "n1", "")
		w.wait(time.Minute)
		w.expectShown("n1", "b/k8s")
		w.expect("bring", told(w.u.SetTarget(target("a/k8s", "n1", ""))), "working n1")
	})
}
