// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// A pool that another client keeps Updating, possibly after Weir's own write, blocks its worker for
// a few intervals at most.
func TestAnEchoKeepsTheLaneForSomeIntervalsAtMost(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "vm=10.9.9.9")
		w.pool(api, "vm=10.9.9.9")
		first := true
		w.fail = func(call string, id lb.PoolID) error {
			if call == "PUT" && id == web && first {
				first = false
				w.pools[web.Key()].Provisioning = lb.Updating
				return armerror.Classify(armerror.Failure{Status: 412, MayBeApplied: true}, errors.New("412 after 503"))
			}
			return nil
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(2 * time.Second)
		w.change(api, "n1=10.0.0.1")
		w.wait((maxOwnWriteIntervals + 1) * w.lanes.cfg.Interval)
		if n := len(w.pools[api.Key()].Addresses); n != 2 {
			t.Errorf("the other pool still has %d addresses", n)
		}
	})
}
