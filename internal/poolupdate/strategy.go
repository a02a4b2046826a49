// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// How many pools have to be due for a write of the whole load balancer, or for writes that overlap: where
// Azure was seen to take them, two save the time of one operation. For less nothing is tried.
const (
	wholeFrom      = 3
	wholeKnownFrom = 2
)

// together returns the pools to attempt by one write of the load balancer, and for which
// changes that may be; none if they are too few, if such writes are not to be made, or if the pool
// whose turn it is cannot be one of them: others that change all the time would keep it from ever
// being attempted.
func (l *lane) together(now time.Time, next lb.PoolKey) ([]lb.PoolKey, wholewrite.Leaves) {
	if l.cfg.Whole == nil || l.wholeAfter.After(now) || waitingIn(l.queue) < wholeKnownFrom { // most changes come alone
		return nil, wholewrite.Leaves{}
	}
	may := l.verdicts.May(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.unrest(now, c) })
	if may.None() {
		return nil, may
	}
	for _, part := range []struct {
		from int
		may  wholewrite.Leaves
	}{{wholeFrom, may}, {wholeKnownFrom, seen(l, may)}} {
		due := l.queue.choose(now, func(groups []poolschedule.Group) []lb.PoolKey {
			return poolschedule.Together(groups, now, l.cfg.Interval, part.may)
		})
		if len(due) >= part.from && slices.Contains(due, next) {
			return due, part.may
		}
	}
	return nil, may
}

// seen is the part of a leave for which Azure was seen, here or before, to take what it is for.
func seen(l *lane, may wholewrite.Leaves) wholewrite.Leaves {
	if l.answer(wholewrite.Addresses) != behaviour.Taken {
		may.Addresses = wholewrite.No
	}
	if l.answer(wholewrite.AdminStates) != behaviour.Taken {
		may.States = wholewrite.No
	}
	return may
}

// inTurn returns the pools to attempt by writes that overlap, in their order, and by which leave; none
// if they are too few, if such writes are not to be made, or if the pool whose turn it is cannot be
// one of them.
func (l *lane) inTurn(now time.Time, next lb.PoolKey) ([]lb.PoolKey, wholewrite.Leave) {
	if l.cfg.Pipeline == nil || l.cfg.Whole == nil || l.rowAfter.After(now) {
		return nil, wholewrite.No
	}
	leave := l.verdicts.MayOverlap(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.unrest(now, c) })
	if leave == wholewrite.No {
		return nil, leave
	}
	due := l.dueInTurn(now, leave)
	from := wholeFrom
	if l.answer(wholewrite.Overlapping) == behaviour.Supersede {
		from = wholeKnownFrom
	}
	if len(due) < from || !slices.Contains(due, next) {
		return nil, leave
	}
	return due, leave
}

// looks returns the pools to look at by one read of their load balancer; nil if each is read by itself.
func (l *lane) looks(now time.Time) []lb.PoolKey {
	if l.cfg.Whole == nil {
		return nil
	}
	return l.those(poolschedule.LooksTogether, now)
}

// those returns the pools of a choice.
func (l *lane) those(are func([]poolschedule.Group, time.Time, time.Duration) []lb.PoolKey, now time.Time) []lb.PoolKey {
	return l.queue.choose(now, func(groups []poolschedule.Group) []lb.PoolKey { return are(groups, now, l.cfg.Interval) })
}

func (l *lane) dueInTurn(now time.Time, leave wholewrite.Leave) []lb.PoolKey {
	return l.queue.choose(now, func(groups []poolschedule.Group) []lb.PoolKey {
		return poolschedule.InTurn(groups, now, l.cfg.Interval, leave)
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
