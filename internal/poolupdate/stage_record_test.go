// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"testing"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// An earlier process saw Azure apply addresses; now it only echoes them. A batched update by the
// worker reads them back, which another writer's update does not.
func TestACarriedChangeIsReadBackWhereOnlyTheRecordSaysItIsTaken(t *testing.T) {
	s := shelf{holds: map[string]wholewrite.Record{}}
	r, _ := wholewrite.Record{}.UpdateResult(wholewrite.Addresses, behaviour.Accepted, "v1", time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	s.holds["s"] = r
	inWholeWorldOf(t, 1, func(c *Config) { c.BatchSetting, c.CapabilityStore = wholewrite.Auto, &s }, func(w *whole, pools []lb.PoolID) {
		time.Sleep(20 * 24 * time.Hour)
		w.wait(time.Second)
		unlock, err := w.lanes.Lock(w.t.Context(), pools[0].LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		w.change(pools[0], "n1=10.0.0.1")
		next, written := w.lanes.StagePools(w.t.Context(), pools[0].LoadBalancer, w.whole(pools...))
		w.set(func() { p := w.pools[pools[0].Key()]; p.Etag = nextEtag(p.Etag); next[0].Etag = p.Etag }) // ignored
		written(next, false)
		unlock()
		w.wait(time.Hour)
		w.expectPool(pools[0], "vm=10.9.9.9 n1=10.0.0.1")
	})
}
