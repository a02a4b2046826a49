// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// A worker summarizes all waiting operations each time it wakes: a thousand pools, added one by
// one, are half a million groups.
func TestSummarizingAllocatesNothing(t *testing.T) {
	pool := lb.PoolID{LoadBalancer: lb.LoadBalancerID{Name: "kubernetes"}, Name: "web"}
	key, ops := pool.Key(), []Operation{{Pool: pool, QueuedAt: time.Unix(1, 0)}, {Pool: pool, QueuedAt: time.Unix(2, 0), RetryCount: 1}}
	if n := testing.AllocsPerRun(100, func() { NewGroup(key, ops, History{}) }); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
	ops[0].Admin = true
	g := NewGroup(key, ops, History{})
	if ops[0].FailedAttempts = 7; g.Admin == nil || g.Admin.FailedAttempts != 0 {
		t.Error("what becomes of the queue's operation shows in the group")
	}
}
