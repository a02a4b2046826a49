// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"testing"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// What batched updates have learned applies to other writers of the load balancer: addresses and
// admin states separately, and contrary to the configuration.
func TestCarryKnowsWhatWholeWritesHaveLearned(t *testing.T) {
	seen := func(addresses, states behaviour.Result) map[string]wholewrite.Record {
		now := time.Now()
		return map[string]wholewrite.Record{"s": {Version: "v1", Addresses: wholewrite.Result{Answer: addresses, At: now}, AdminStates: wholewrite.Result{Answer: states, At: now}}}
	}
	for _, tt := range []struct {
		about   string
		setting wholewrite.Setting
		file    behaviour.Behavior
		record  func() map[string]wholewrite.Record
		wants   string
		carried bool
	}{
		{"nothing is known", wholewrite.Auto, behaviour.Behavior{}, nil, "n1=10.0.0.1", false},
		{"addresses are taken", wholewrite.Auto, behaviour.Behavior{}, func() map[string]wholewrite.Record { return seen(behaviour.Accepted, "") }, "n1=10.0.0.1", true},
		{"addresses are taken, and a node leaves", wholewrite.Auto, behaviour.Behavior{}, func() map[string]wholewrite.Record { return seen(behaviour.Accepted, "") }, "n1=10.0.0.1/Down", false},
		{"both are taken, and a node leaves", wholewrite.Auto, behaviour.Behavior{}, func() map[string]wholewrite.Record { return seen(behaviour.Accepted, behaviour.Accepted) }, "n1=10.0.0.1/Down", true},
		{"addresses are ignored", wholewrite.Auto, behaviour.Behavior{}, func() map[string]wholewrite.Record { return seen(behaviour.Ignored, "") }, "n1=10.0.0.1", false},
		{"admin states are", wholewrite.Auto, behaviour.Behavior{}, func() map[string]wholewrite.Record { return seen(behaviour.Accepted, behaviour.Ignored) }, "n1=10.0.0.1", false},
		{"a file says so", wholewrite.Auto, taking, nil, "n1=10.0.0.1/Down", true},
		{"a file counts more than the record", wholewrite.Auto, ignoring, func() map[string]wholewrite.Record { return seen(behaviour.Accepted, behaviour.Accepted) }, "n1=10.0.0.1", false},
		{"what is set is no knowledge", wholewrite.Always, behaviour.Behavior{}, nil, "n1=10.0.0.1", false},
		{"none are made, and a file says so", wholewrite.Never, taking, nil, "n1=10.0.0.1", true},
	} {
		t.Run(tt.about, func(t *testing.T) {
			var s shelf
			inWholeWorldOf(t, 1, func(c *Config) { c.BatchSetting, c.CapabilityStore, c.Behaviour = tt.setting, &s, tt.file }, func(w *whole, pools []lb.PoolID) {
				if tt.record != nil {
					s.mu.Lock()
					s.holds = tt.record()
					s.mu.Unlock()
				}
				w.restart("v1")
				unlock := w.hold()
				w.change(pools[0], tt.wants)
				c := w.lanes.stagePools(w.t.Context(), pools[0].LoadBalancer, w.whole(pools[0]))
				want := "vm=10.9.9.9"
				if tt.carried {
					want += " " + tt.wants
				}
				w.expect("the pool is written as", spell(c.pools[0].Addresses), want)
				c.requeueAll(false)
				unlock()
				w.wait(time.Minute)
				w.expectPool(pools[0], "vm=10.9.9.9 "+tt.wants)
			})
		})
	}
}
