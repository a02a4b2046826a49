// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// brings reports whether a write of the whole load balancer is known to give a pool what it carries
// for it: by the file of the operator, or by what such writes were seen to do. What is not known is
// not counted on: Azure has been seen to answer success, to leave pools that are there as they are,
// and to make new ones empty. Where it ignores admin states it is left alone altogether.
func (l *lane) brings(p lb.Pool) bool {
	if p.Etag == "" {
		return l.cfg.Behaviour.WholeWriteNewPools == behaviour.Filled
	}
	return l.answer(wholewrite.Addresses) == behaviour.Taken && l.answer(wholewrite.AdminStates) != behaviour.Ignored
}

// bringsStates is brings for a change of admin states, if it is one.
func (l *lane) bringsStates(todo poolwrite.Change) bool {
	_, states := todo.Changes()
	return !states || l.answer(wholewrite.AdminStates) == behaviour.Taken
}

func (l *lane) answer(c wholewrite.Change) behaviour.Answer {
	return l.verdicts.Answer(l.id.SubscriptionID, c, time.Now())
}

// empty returns a pool that is to be made as the write of its load balancer has to make it:
// without the addresses that the lane puts there afterwards.
func empty(p lb.Pool) lb.Pool {
	p.Addresses = nil
	return p
}
