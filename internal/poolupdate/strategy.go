// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// wholeFrom is how many pools have to be due for a write of the whole load balancer.
const wholeFrom = 3

// together returns the pools to attempt by one write of the load balancer, and for which
// changes that may be; none if they are too few, or if such writes are not to be made.
func (l *lane) together(now time.Time) ([]lb.PoolKey, wholewrite.Leaves) {
	if l.cfg.Whole == nil || l.wholeAfter.After(now) || waitingIn(l.queue) < wholeFrom { // most changes come alone
		return nil, wholewrite.Leaves{}
	}
	may := l.verdicts.May(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.unrest(now, c) })
	if may.None() {
		return nil, may
	}
	due := l.queue.choose(now, func(groups []poolschedule.Group) []lb.PoolKey {
		return poolschedule.Together(groups, now, l.cfg.Interval, may)
	})
	if len(due) < wholeFrom {
		return nil, may
	}
	return due, may
}

// looks returns the pools to look at by one read of their load balancer; nil if each is read by itself.
func (l *lane) looks(now time.Time) []lb.PoolKey {
	if l.cfg.Whole == nil {
		return nil
	}
	return l.queue.choose(now, func(groups []poolschedule.Group) []lb.PoolKey {
		return poolschedule.LooksTogether(groups, now, l.cfg.Interval)
	})
}

// waitedFor returns the pools that are due and that somebody waits for.
func (l *lane) waitedFor(now time.Time) []lb.PoolKey {
	return l.queue.choose(now, func(groups []poolschedule.Group) []lb.PoolKey {
		return poolschedule.WaitedFor(groups, now, l.cfg.Interval)
	})
}

// changesIn returns the changes that a write makes.
func changesIn(writes []parcel) []wholewrite.Change {
	var addresses, states bool
	for _, p := range writes {
		a, s := p.r.Todo.Changes()
		addresses, states = addresses || a, states || s
	}
	var all []wholewrite.Change
	if addresses {
		all = append(all, wholewrite.Addresses)
	}
	if states {
		all = append(all, wholewrite.AdminStates)
	}
	return all
}

// allowed reports whether what is to be written may be a part.
func allowed(may wholewrite.Leaves, todo poolwrite.Change) bool {
	addresses, states := todo.Changes()
	return may.Allow(addresses, states, len(todo.Downed) > 0)
}

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
