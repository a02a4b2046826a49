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

// With manual upgrades: one model write, then one upgrade request for all instances without other
// changes. Instances in sync are not read again for other pools.
func TestAScaleSetJoins(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "a/outbound")
		w.has("blue/0", "a/outbound")
		w.has("blue/1", "a/outbound")
		w.has("blue/2", "a/outbound")
		w.set(func() { w.insts["blue/2"].LatestModel = false }) // has changes of another writer
		w.expect("bring", w.bring("a/k8s", "blue/0 blue/1 blue/2", ""), "working blue/0 blue/1 blue/2")
		w.wait(time.Minute)
		w.expectCalls(
			"+1s SET blue", "+1.1s INSTANCES blue", "+1.2s PATCH blue",
			"+3.2s SET blue", "+3.3s INSTANCES blue", "+3.4s UPGRADE blue 0 1", "+5.4s PUT blue/2",
			"+7.4s SET blue", "+7.5s INSTANCES blue")
		for _, name := range []string{"blue", "blue/0", "blue/1", "blue/2"} {
			w.expectShown(name, "a/outbound a/k8s")
		}
		w.expectSettled("+7.6s a/k8s")
	})
}

// A scale set model that names an empty pool must leave it, or Azure never deletes the pool. The
// model is checked once, whatever happens in other pools.
func TestAModelLeavesAnEmptyPool(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "a/outbound a/k8s")
		w.has("blue/0", "a/outbound")
		w.nodes = []nic.Node{{Machine: machineOf("blue/0")}}
		w.expect("bring", w.bring("a/k8s", "", ""), "working blue/0; looking")
		w.wait(time.Minute)
		w.expectShown("blue", "a/outbound")
		w.expectShown("blue/0", "a/outbound")
		w.expectSettled("+3.4s a/k8s")
		w.take(&w.calls)
		w.expect("again", w.bring("a/k8s", "", ""), "")
		w.wait(time.Minute)
		w.expectCalls()
		w.bring("b/other", "blue/0", "")
		w.expect("at work for another", w.bring("a/k8s", "", ""), "")
	})
}

// The same for a scale set without machines; a failed list is retried.
func TestAModelWithoutMachinesLeavesAnEmptyPool(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "a/outbound a/k8s")
		w.failing("SETS", 1, armerror.Failure{Status: 500})
		w.expect("bring", w.bring("a/k8s", "", ""), "looking")
		w.wait(time.Second)
		w.expect("the list has failed", w.bring("a/k8s", "", ""), "looking")
		w.wait(20 * time.Second)
		w.expect("it is known", w.bring("a/k8s", "", ""), "working blue/0")
		w.wait(time.Minute)
		w.expectShown("blue", "a/outbound")
		w.expect("done", w.bring("a/k8s", "", ""), "")
		w.expect("lists", fmt.Sprint(w.setLists), "2")
	})
}

// A process that did not write the model itself writes each instance, and nothing else.
func TestAScaleSetAfterARestart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare = true
		w.hasSet("blue", lb.UpgradeManual, "")
		w.has("blue/0", "")
		w.has("blue/1", "")
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(3250 * time.Millisecond)
		w.stop()
		w.expect("calls", w.count(), "INSTANCES 1 PATCH 1 SET 2")
		w.run(4, nil)
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "GET 2 INSTANCES 2 PUT 2 SET 2")
		w.expectShown("blue/0", "a/k8s")
	})
}

// Another writer changes the model after Weir: no instance is upgraded to it.
func TestForeignChangeOfModel(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "")
		w.has("blue/0", "")
		w.bring("a/k8s", "blue/0", "")
		w.wait(3250 * time.Millisecond)
		w.set(func() { w.sets["blue"].Etag = w.etag() })
		w.wait(time.Minute)
		w.expect("calls", w.count(), "INSTANCES 3 PATCH 1 PUT 1 SET 3")
	})
}

// With automatic upgrades: wait for Azure, and write the instances it does not upgrade in time.
func TestAnAutomaticScaleSet(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeAutomatic, "")
		w.has("blue/0", "")
		w.has("blue/1", "")
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(30 * time.Second)
		w.expectSettled("+3.4s a/k8s")
		w.set(func() { w.upgrades("blue", "0") })
		w.wait(time.Minute)
		const why = "instance 1 of scale set blue is not upgraded to the scale set's model yet, which its upgrade policy Automatic leaves to Azure"
		w.expect("bring", w.bring("a/k8s", "blue/0 blue/1", ""), "working blue/0; waits blue/1: "+why)
		w.expectSettled("+39s a/k8s") // with the wait for blue/0
		w.expect("calls", w.count(), "INSTANCES 6 PATCH 1 SET 6")
		w.wait(10 * time.Minute)
		w.expect("calls", strings.Join(strings.Fields(w.count())[2:4], " "), "PUT 1")
		w.expectShown("blue/1", "a/k8s")
	})
}

// An instance was behind the model before, because of another writer's change: the wait for its
// upgrade starts when it is to join.
func TestAnInstanceThatWasBehindBefore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeAutomatic, "a/k8s")
		w.has("blue/0", "a/k8s")
		w.set(func() { w.insts["blue/0"].LatestModel = false })
		w.bring("a/k8s", "blue/0", "")
		w.wait(time.Hour)
		w.expect("calls", w.count(), "INSTANCES 1 SET 1")
		w.has("blue/0", "")
		w.set(func() { w.insts["blue/0"].LatestModel = false })
		w.bring("a/k8s", "blue/0", "")
		w.wait(5 * time.Minute)
		w.expectShown("blue/0", "")
		w.expect("calls", strings.Join(strings.Fields(w.count())[:1], " "), "INSTANCES") // and no PUT
		w.wait(6 * time.Minute)
		w.expectShown("blue/0", "a/k8s")
	})
}

// A node is excluded and included again. The model is unchanged, so no upgrade brings its instance
// back: it is written at once. After the next model write, it waits for Azure again.
func TestAnInstanceThatLeftAndComesBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeAutomatic, "a/k8s")
		w.has("blue/0", "a/k8s")
		w.has("blue/1", "a/k8s")
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(time.Minute)
		w.nodes = []nic.Node{{Machine: machineOf("blue/0"), Configuration: "a"}, {Machine: machineOf("blue/1"), Configuration: "a"}}
		w.bring("a/k8s", "blue/1", "blue/0")
		w.wait(time.Minute)
		w.expectShown("blue/0", "")
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(time.Minute)
		w.expectShown("blue/0", "a/k8s")
		w.expect("calls", w.count(), "INSTANCES 5 PUT 2 SET 5")
		w.bring("a/more", "blue/0 blue/1", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "INSTANCES 5 PATCH 1 SET 5")
	})
}

// One instance fails: the others are written, and it alone is retried.
func TestAnInstanceFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "a/k8s")
		for n := range 3 {
			w.has(fmt.Sprint("blue/", n), "")
		}
		w.failing("PUT blue/1", 1, armerror.Failure{Status: 403})
		w.bring("a/k8s", "blue/0 blue/1 blue/2", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "INSTANCES 2 PUT 3 SET 2")
		w.expectShown("blue/2", "a/k8s")
		w.expect("bring", w.bring("a/k8s", "blue/0 blue/1 blue/2", ""), "failed blue/1: refused")
		w.bring("a/k8s", "blue/0 blue/1 blue/2", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "INSTANCES 2 PUT 1 SET 2")
		w.expectShown("blue/1", "a/k8s")
	})
}

// The scale set is busy: the other instances would fail the same way and are not tried.
func TestAScaleSetIsBusy(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "a/k8s")
		w.has("blue/0", "")
		w.has("blue/1", "")
		w.failing("PUT", 1, armerror.Failure{Status: 409})
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "INSTANCES 1 PUT 1 SET 1")
		w.expect("bring", w.bring("a/k8s", "blue/0 blue/1", ""), "failed blue/0: refused; failed blue/1: refused")
	})
}

// A conflict: the model, or the instance, is read and written once more.
func TestAScaleSetIsOvertaken(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "")
		w.has("blue/0", "")
		w.failing("PATCH", 1, armerror.Failure{Status: 412})
		w.bring("a/k8s", "blue/0", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "INSTANCES 4 PATCH 2 SET 4 UPGRADE 1")
		w.failing("PATCH", 2, armerror.Failure{Status: 412})
		w.bring("a/k8s", "", "blue/0")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "INSTANCES 2 PATCH 2 SET 2")
		w.expect("bring", w.bring("a/k8s", "", "blue/0"), "failed blue/0: refused")
	})
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "a/k8s")
		w.has("blue/0", "")
		w.failing("PUT", 1, armerror.Failure{Status: 412})
		w.bring("a/k8s", "blue/0", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "GET 1 INSTANCES 2 PUT 2 SET 2")
	})
}

// The model write fails: all machines waiting for it fail.
func TestAModelThatFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "")
		w.has("blue/0", "")
		w.has("blue/1", "")
		w.failing("PATCH", 1, armerror.Failure{Status: 403})
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(time.Minute)
		w.expect("bring", w.bring("a/k8s", "blue/0 blue/1", ""), "failed blue/0: refused; failed blue/1: refused")
		w.expect("calls", w.count(), "INSTANCES 1 PATCH 1 SET 1")
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(time.Minute)
		w.expectShown("blue/1", "a/k8s")
	})
}

// Instances are written for a minute at a time, each once, so that other resources get their turn.
func TestManyInstances(t *testing.T) {
	inWorld(t, func(w *world) {
		w.written = 30 * time.Second
		w.hasSet("blue", lb.UpgradeManual, "a/k8s")
		var names []string
		for n := range 7 {
			names = append(names, fmt.Sprint("blue/", n))
			w.has(names[n], "")
		}
		w.bring("a/k8s", strings.Join(names, " "), "")
		w.wait(10 * time.Minute)
		w.expect("calls", w.count(), "INSTANCES 5 PUT 7 SET 5")
		w.expectSettled("+3m32s a/k8s")
	})
}

// A deleted scale set, and a deleted instance.
func TestAScaleSetIsGone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bring("a/k8s", "blue/0 green/0", "blue/1")
		w.hasSet("green", lb.UpgradeManual, "a/k8s")
		w.wait(3 * time.Second)
		w.expect("bring", w.bring("a/k8s", "blue/0 green/0", "blue/1"),
			"working blue/1; without blue/0: Azure has no instance 0 of scale set blue; without green/0: Azure has no instance 0 of scale set green")
	})
}

// The last node leaves: the model is written first. An instance without a node keeps the pools of
// the model.
func TestInstancesLeave(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "a/k8s")
		w.has("blue/0", "a/k8s")
		w.has("blue/1", "a/k8s")
		w.set(func() { w.nodes = []nic.Node{{Machine: machineOf("blue/0")}} })
		w.bring("a/k8s", "blue/0", "")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "INSTANCES 1 SET 1")
		w.bring("a/k8s", "", "blue/0 blue/1")
		w.wait(time.Minute)
		w.expect("calls", w.count(), "INSTANCES 3 PATCH 1 SET 3 UPGRADE 1")
		for _, name := range []string{"blue", "blue/0", "blue/1"} {
			w.expectShown(name, "")
		}
	})
}
