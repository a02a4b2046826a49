// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"weir.dev/weir/lab/apiserver"
	"weir.dev/weir/lab/armemu"
)

// Watches break again and again while the endpoints move to another node, and restored before, during and after the write
// that retains the first one. That node leaves the pool in any case, also if writes of the status fail.
func TestRetainedMembersLeaveOnceWatchesAreRestored(t *testing.T) {
	runStage(t, Options{Latency: armemu.Busy, LatencyScale: twoSecondWrites}, func(s *Stage) {
		newLocalService(s)
		r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // repeatable
		for round := range 40 {
			to := (round + 1) % 2
			s.APIFault(0, apiserver.Fault{Verb: "watch", Resource: "nodes", Status: 503})
			s.BreakWatches("nodes")
			s.Sleep(1500 * time.Millisecond)
			s.APIFault(0, apiserver.Fault{Resource: "backendpools/status", Latency: time.Duration(r.IntN(4)) * time.Second})
			failOn(s.SetEndpoints("shop/web", map[int]bool{to: true}))
			s.Sleep(time.Duration(r.IntN(10_000)) * time.Millisecond)
			failOn(s.SetEndpoints("shop/web", map[int]bool{to: true, 2: true}))
			s.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
			s.endAPIFaults[0]()
			s.Sleep(2 * time.Minute)
			s.EndFaults()
			s.expectMembers(fmt.Sprintf("round %d", round), fmt.Sprint(to, 2))
			s.Sleep(3 * time.Minute)
		}
	})
}
