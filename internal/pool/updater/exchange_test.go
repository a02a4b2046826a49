// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/pool/schedule"
)

// While a load balancer is written all the time, a due change waits for at most one of these
// writes, even if changes of other namespaces that need no write are due earlier. A load balancer
// write waits for at most one attempt per namespace.
func TestADueChangeRunsBetweenTwoWritesOfTheLoadBalancer(t *testing.T) {
	const writes = 2 * time.Second
	inWorld(t, 3, func(w *world) {
		w.readTime, w.writeTime = 50*time.Millisecond, writes
		w.pool(web, "")
		crowd := func() {
			for i := range 30 {
				id := poolID("kubernetes", fmt.Sprint("crowd-", i))
				if w.pools[id.Key()] == nil {
					w.set(func() { w.pool(id, "") })
				}
				w.lanes.Add(schedule.Operation{Ref: schedule.Ref{Namespace: fmt.Sprint("crowd-", i%3), Name: id.Name}, Pool: id, ChangedAt: time.Now()})
			}
		}
		ctx, stop := context.WithCancel(w.t.Context())
		stopped, longest := make(chan struct{}), time.Duration(0)
		go func() {
			defer close(stopped)
			for startedAt := time.Now(); ; startedAt = time.Now() {
				unlock, err := w.lanes.Lock(ctx, web.LoadBalancer)
				if err != nil {
					return
				}
				longest = max(longest, time.Since(startedAt))
				time.Sleep(writes)
				unlock()
			}
		}()
		for round := range 10 {
			crowd()
			w.wait(writes)
			w.change(web, fmt.Sprintf("n1=10.0.0.%d", round+1))
			w.wait(writes + 4*w.readTime + w.writeTime + 100*time.Millisecond)
			w.expectPool(web, fmt.Sprintf("n1=10.0.0.%d", round+1))
			w.wait(20 * time.Second)
		}
		stop()
		<-stopped
		if limit := w.writeTime + 4*w.readTime; longest > limit {
			t.Errorf("a write of the load balancer waited for %s, want at most %s", longest, limit)
		}
	})
}
