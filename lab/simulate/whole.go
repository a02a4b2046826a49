// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"testing/synctest"

	"weir.dev/weir/lab/cluster"
)

// WholeCheck is the check of a seed that all of Weir was played with.
const WholeCheck = "whole"

// PlayWhole plays a seed with all of Weir, as it is wired, in a bubble of its own. The log says
// what happened, and is empty for a bubble that does not end.
func PlayWhole(seed uint64, steps int) (o Outcome, log string) {
	var err error
	var told string
	if trouble := bubble(func() { told, err = cluster.Play(cluster.Draw(seed, steps), synctest.Wait) }); trouble != "" {
		return Outcome{Check: LockUp, How: trouble}, "" // the bubble may still be at work, so nothing is taken from it
	}
	if err != nil {
		o.Check, o.How = WholeCheck, err.Error()
	}
	return o, told
}

// Play plays a seed of the search.
func (s Search) Play(seed uint64) Outcome {
	if s.Pipelined {
		return Play(Pipelined(seed, s.Steps))
	}
	if !s.Whole {
		return Play(Schedule(seed, s.Steps))
	}
	o, _ := PlayWhole(seed, s.Steps)
	return o
}
