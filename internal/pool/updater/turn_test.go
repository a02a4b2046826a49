// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// inBusyWorld sets up three pools, of which p1 and p2 change with every accepted write.
func inBusyWorld(t *testing.T, explanation func(w *piped, pool lb.PoolID)) {
	inPipedWorld(t, 3, always, func(w *piped, pools []lb.PoolID) {
		n := 0
		changes := func() {
			n++
			for _, id := range pools[:2] {
				w.change(id, fmt.Sprintf("n%d=10.0.0.%d", n, n%200+1))
			}
		}
		w.set(func() { w.accepted = func(lb.PoolID) { go changes() } })
		changes()
		explanation(w, pools[2])
	})
}

// A pool that has to be written separately gets its turn although others are due after each write.
func TestAPoolThatGoesAloneHasItsTurn(t *testing.T) {
	inBusyWorld(t, func(w *piped, alone lb.PoolID) {
		w.set(func() { w.pools[alone.Key()].NIC = true })
		w.change(alone, "n1=10.0.0.1")
		w.wait(interval)
		if got := w.sent(); !strings.Contains(got, "GET p3") {
			t.Errorf("got %s", got)
		}
	})
}

// Admin states go before all others.
func TestAdminStatesGoBeforeWritesOfOthers(t *testing.T) {
	inBusyWorld(t, func(w *piped, drains lb.PoolID) {
		w.wait(time.Second)
		w.sent()
		w.drainAll([]lb.PoolID{drains}, "n9=10.0.0.9/Down")
		w.wait(interval)
		if _, first, _ := strings.Cut(w.sent(), "BEGIN "); !strings.HasPrefix(first, "p3") {
			t.Errorf("got %s", first)
		}
	})
}
