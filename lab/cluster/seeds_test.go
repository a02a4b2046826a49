// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"flag"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/test/shipped"
)

var (
	firstSeed = flag.Uint64("first", 1, "the first seed")
	seeds     = flag.Int("seeds", 30, "how many seeds")
	stop      = flag.Bool("stop", false, "stop at the first that fails")
)

// Random schedules keep all invariants.
func TestSeeds(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // much garbage, small live heap
	count := *seeds
	if testing.Short() {
		count = min(count, 6)
	}
	for n := range count {
		if *stop && t.Failed() {
			return
		}
		seed := *firstSeed + uint64(n)
		schedule := NewSchedule(seed, 40)
		schedule.Role = shipped.AzureRole()
		if schedule.Interfaces {
			both := *shipped.AzureRoles()
			both.Actions = append(slices.Clone(both.Actions), "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/delete") // for users
			schedule.Role = &both
		}
		var log string
		var err error
		synctest.Test(t, func(*testing.T) { log, err = RunSchedule(schedule, synctest.Wait) })
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if *seeds == 1 {
			t.Log(log)
		} else if _, after, inSync := strings.Cut(log, "all is in sync after "); inSync {
			line, _, _ := strings.Cut(after, "\n")
			t.Logf("seed %d: in sync after %s", seed, line)
		}
	}
}
