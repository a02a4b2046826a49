// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"testing/synctest"

	"weir.dev/weir/lab/cluster"
)

// WholeCheck is the check for runs of the complete controller.
const WholeCheck = "whole"

// PlayWhole runs a seed with the complete controller in a new bubble. The log is empty if the
// bubble does not end.
func PlayWhole(seed uint64, steps int) (o Outcome, log string) {
	var err error
	var told string
	if trouble := bubble(func() { told, err = cluster.Play(cluster.Draw(seed, steps), synctest.Wait) }); trouble != "" {
		return Outcome{Check: LockUp, How: trouble}, "" // the abandoned bubble may still write to it
	}
	if err != nil {
		o.Check, o.How = WholeCheck, err.Error()
	}
	return o, told
}

// Play runs a seed of the search.
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
