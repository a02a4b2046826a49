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

// inBusyWorld is a world of three pools, of which p1 and p2 change with every write: those are made
// together, for Azure is known to take changes of addresses that way.
func inBusyWorld(t *testing.T, story func(w *whole, pool lb.PoolID)) {
	known := behaviour.Behaviour{WholeWriteAddresses: behaviour.Taken}
	inWholeWorldOf(t, 3, func(c *Config) { c.Behaviour, c.WholeWrites = known, wholewrite.Auto }, func(w *whole, pools []lb.PoolID) {
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

// startsWith expects some calls, the first of those that were made.
func (w *whole) startsWith(want string) {
	w.t.Helper()
	if got := w.wrote(); !strings.HasPrefix(got, want) {
		w.t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A pool that has to be written alone has its turn, though others that are written together are due
// after each write.
func TestAPoolThatGoesAloneHasItsTurn(t *testing.T) {
	inBusyWorld(t, func(w *whole, alone lb.PoolID) {
		w.set(func() { delete(w.pools, alone.Key()) }) // the joint read does not show it
		w.change(alone, "n1=10.0.0.1")
		w.wait(interval)
		w.startsWith("GET balancer, PUT balancer, GET balancer, GET p3, GET balancer, PUT balancer")
	})
}

// Admin states go ahead of all others, though it is not known whether they may go together.
func TestAdminStatesGoBeforeWritesOfOthers(t *testing.T) {
	inBusyWorld(t, func(w *whole, drains lb.PoolID) {
		w.wait(time.Second)
		w.drainAll([]lb.PoolID{drains}, "n9=10.0.0.9/Down")
		w.wait(interval)
		w.startsWith("GET balancer, PUT balancer, GET balancer, GET p3, PUT p3, GET balancer, PUT balancer")
	})
}
