// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// inBusyWorld sets up three pools, of which p1 and p2 change with every write, batched because
// Azure is known to apply addresses.
func inBusyWorld(t *testing.T, story func(w *whole, pool lb.PoolID)) {
	known := behaviour.Behavior{UpdateAddresses: behaviour.Accepted}
	inWholeWorldOf(t, 3, func(c *Config) { c.Behaviour, c.BatchSetting = known, wholewrite.Auto }, func(w *whole, pools []lb.PoolID) {
		n := 0
		w.during = func() {
			n++
			for _, id := range pools[:2] {
				w.change(id, fmt.Sprintf("n%d=10.0.0.%d", n, n%200+1))
			}
		}
		w.during()
		story(w, pools[2])
	})
}

// startsWith compares the first calls.
func (w *whole) startsWith(want string) {
	w.t.Helper()
	if got := w.wrote(); !strings.HasPrefix(got, want) {
		w.t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A pool that has to be written separately gets its turn although batched pools are due after each
// write.
func TestAPoolThatGoesAloneHasItsTurn(t *testing.T) {
	inBusyWorld(t, func(w *whole, alone lb.PoolID) {
		w.set(func() { delete(w.pools, alone.Key()) }) // the shared read does not show it
		w.change(alone, "n1=10.0.0.1")
		w.wait(interval)
		w.startsWith("GET balancer, PUT balancer, GET balancer, GET p3, GET balancer, PUT balancer")
	})
}

// Admin states go before all others even if batching them is untested.
func TestAdminStatesGoBeforeWritesOfOthers(t *testing.T) {
	inBusyWorld(t, func(w *whole, drains lb.PoolID) {
		w.wait(time.Second)
		w.drainAll([]lb.PoolID{drains}, "n9=10.0.0.9/Down")
		w.wait(interval)
		w.startsWith("GET balancer, PUT balancer, GET balancer, GET p3, PUT p3, GET balancer, PUT balancer")
	})
}
