// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"testing/synctest"

	"weir.dev/weir/lab/cluster"
)

// FullCheck is the check for runs of the complete controller.
const FullCheck = "whole"

// RunFull runs a seed with the complete controller. The log is empty if the bubble does not end.
func RunFull(seed uint64, steps int) (o Result, log string) {
	var err error
	var output string
	if failure := runInVirtualTime(func() { output, err = cluster.RunSchedule(cluster.NewSchedule(seed, steps), synctest.Wait) }); failure != "" {
		return Result{Check: LockUp, Detail: failure}, "" // the abandoned bubble may still write to it
	}
	if err != nil {
		o.Check, o.Detail = FullCheck, err.Error()
	}
	return o, output
}

// RunSeed runs a seed of the search.
func (s Search) RunSeed(seed uint64) Result {
	if s.Concurrent {
		return RunSchedule(ConcurrentSchedule(seed, s.Steps))
	}
	if !s.Full {
		return RunSchedule(Schedule(seed, s.Steps))
	}
	o, _ := RunFull(seed, s.Steps)
	return o
}
