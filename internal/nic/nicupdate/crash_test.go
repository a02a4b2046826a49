// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// crash runs a change during which the process ends at a call, before or after the call takes
// effect, and another process takes over. It returns the number of calls.
func crash(t *testing.T, at int, landed bool) (calls int) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ctx = t.Context()
		w.hasSet("blue", lb.UpgradeManual, "x/out")
		for _, name := range all {
			w.has(name, "x/out")
		}
		w.has("n2", "x/out b/k8s")
		w.hasSet("green", lb.UpgradeAutomatic, "b/k8s x/out")
		w.nodes = []nic.Node{{Machine: machineOf("n2"), Configuration: "a"}}
		bring := func() {
			w.bring("a/k8s", "n1 n2 blue/0 blue/1 blue/2", "")
			w.bring("a/k8s-6", "n1 n2 blue/0 blue/1 blue/2", "")
			w.bring("b/k8s", "green/0", "n2")
		}
		n := 0
		ends := func(when bool) bool {
			if when {
				n++
			}
			if when && n == at {
				w.cancel()
			}
			return when && n == at
		}
		w.run(2, nil)
		w.onCall = func(string) { w.set(func() { ends(!landed) }) }
		w.lose = func(string) bool { return ends(landed) }
		bring()
		w.wait(5 * time.Minute)
		w.stop()
		calls = n
		w.set(func() { w.onCall, w.lose = func(string) {}, func(string) bool { return false } })
		w.run(2, nil)
		for range 4 {
			bring()
			w.wait(time.Minute)
		}
		w.stop()
		for _, name := range []string{"n1", "n2", "blue", "blue/0", "blue/1", "blue/2"} {
			w.expect(name, ours(w.shows(name)), "a/k8s|a/k8s-6")
		}
		for _, name := range []string{"green", "green/0"} {
			w.expect(name, ours(w.shows(name)), "b/k8s")
		}
	})
	return calls
}

// Wherever a process ends, the next one brings all machines in sync.
func TestACrashAnywhere(t *testing.T) {
	for _, landed := range []bool{false, true} {
		calls := crash(t, 0, landed)
		if calls < 5 {
			t.Fatalf("only %d calls", calls)
		}
		for at := 1; at <= calls; at++ {
			crash(t, at, landed)
		}
	}
}
