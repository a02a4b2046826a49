// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/leader"
)

// A leader that resumes after its lease expired writes at once unless its fence counts the frozen
// time; the failed renewal comes too late.
func TestAFrozenLeaderWithoutAFence(t *testing.T) {
	for scale, want := range map[string]string{
		"scale web nodes=(n1)":         "weir-1 writes a pool of web",
		"scale web nodes=(n1, n2, n3)": "weir-1 writes the ledger of web",
	} {
		for _, fenced := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				runStep(t, s, strings.Replace(twoPools, "drift=10m", "replicas=2", 1), "clock 10s")
				if p := s.process; !fenced {
					p.fence = leader.NewFence(time.Hour, p.fence.ReadClock)
					p.fence.RecordRenew(p.epoch, p.fence.ReadClock())
					if err := p.newClient(); err != nil {
						t.Fatal(err)
					}
				}
				runStep(t, s, scale, "clock 280ms", "freeze", "clock 18s", "thaw")
				s.sleepFor(time.Second)
				switch err := s.runChecks(); {
				case fenced && err != nil:
					t.Errorf("%s: %v", scale, err)
				case !fenced && (err == nil || !strings.Contains(err.Error(), want)):
					t.Errorf("%s: %v, want %q", scale, err, want)
				}
				runStep(t, s, "clock 10s")
			})
		}
	}
}
